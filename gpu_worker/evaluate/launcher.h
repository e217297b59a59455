// Processes of ours on a GPU, without anybody else's code in them (harness/launcher.py).
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_LAUNCHER_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_LAUNCHER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/evaluate/examiner.h"
#include "gpu_worker/evaluate/role.h"

namespace kmosaic {

// Asks whichever process is free, and starts one when none is and there may be more. One that
// failed is not used again. Thread-safe.
class LauncherPool {
 public:
  // `starter` outlives the pool. `device`: "cuda", or "emulated" for processes without a GPU.
  LauncherPool(RoleStarter* starter, RoleLimits limits, std::string device, size_t most);
  ~LauncherPool();

  // One request; a descriptor that is not what it was said to be is INVALID_ARGUMENT with
  // its index as "descriptor N", RESOURCE_EXHAUSTED is the GPU's memory, everything else
  // UNAVAILABLE.
  absl::StatusOr<Frame> Call(const nlohmann::json& request, const std::vector<int>& fds);

  // Starts the first process; whether memory of the GPU can be handed from process to process.
  absl::StatusOr<bool> HasDeviceMemory();

 private:
  absl::StatusOr<std::unique_ptr<Role>> Take();
  absl::StatusOr<std::unique_ptr<Role>> Start();
  // Null: it failed.
  void GiveBack(std::unique_ptr<Role> role);

  RoleStarter* const starter_;
  const RoleLimits limits_;
  const std::string device_;
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0;
  std::vector<std::unique_ptr<Role>> idle_;
  bool device_memory_ = false;
};

// Compares on the GPU, to the same words as CompareOutputs.
class LauncherExaminer : public Examiner {
 public:
  // `pool` outlives it. Values that it is asked about lie in `memory`.
  LauncherExaminer(LauncherPool* pool, BlockMemory memory, uint64_t max_bytes)
      : pool_(pool), memory_(memory), max_bytes_(max_bytes) {}

  BlockMemory memory() const override { return memory_; }
  absl::StatusOr<OutputSummary> Summarize(const Parcel& expected) override;
  absl::StatusOr<Comparison> Compare(const Parcel& expected, const Parcel* expected64,
                                     const Parcel& got, const CompareOptions& options) override;
  absl::StatusOr<std::optional<Difference>> FirstDifference(const Parcel& before,
                                                            const Parcel& after) override;
  absl::StatusOr<Parcel> ToHost(const Parcel& parcel) override;

 private:
  // The parcels as the fields `names` of `request`; a descriptor that is none is only the
  // solution's fault where it is the last one and `last_is_given`.
  absl::StatusOr<Frame> Ask(nlohmann::json request, const std::vector<std::string>& names,
                            const std::vector<const Parcel*>& parcels, bool last_is_given);
  absl::StatusOr<Comparison> CompareHere(const Parcel& expected, const Parcel* expected64,
                                         const Parcel& got, const CompareOptions& options);

  LauncherPool* const pool_;
  const BlockMemory memory_;
  const uint64_t max_bytes_;
  HostExaminer host_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_LAUNCHER_H_
