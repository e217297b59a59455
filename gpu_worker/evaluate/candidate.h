// One process that runs a solution.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_CANDIDATE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_CANDIDATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gpu_worker/evaluate/cancellation.h"
#include "gpu_worker/evaluate/device_findings.h"
#include "gpu_worker/evaluate/limits.h"
#include "gpu_worker/evaluate/reference.h"
#include "gpu_worker/evaluate/role.h"
#include "gpu_worker/evaluate/verdict.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// One call of a solution.
struct RunResult {
  Value outputs;
  Value inputs_after;
  // Kernels that it launched; nothing where the device does not count.
  std::optional<uint64_t> launches;
  std::optional<kernelmosaic::v1::WorkReport> work;
  std::vector<DeviceFinding> findings;
  // Output leaf -> input leaf whose memory it shares.
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
};

// Not thread-safe (the cancellation is).
class Candidate {
 public:
  struct Options {
    kernelmosaic::v1::Solution solution;
    // Only for CONTRACT_CUDA.
    kernelmosaic::v1::CudaEntry entry;
    std::string device;
    std::string artifact;  // directory
    uint64_t weight_seed = 0;
    // Order in which the emulated device runs threads: forward, reverse, random:SEED.
    std::string schedule = "forward";
    // What fresh memory is filled with.
    uint8_t poison = 0xFF;
    EvaluationLimits limits;
  };
  Candidate(Options options, RoleStarter* starter, Cancellation* cancellation);
  ~Candidate();

  // Starts the process and loads the solution; PASSED or why not.
  Conclusion Load(const Parcel& init);
  std::variant<RunResult, Conclusion> Run(const TaskCase& task_case);

  std::string Output();
  uint8_t poison() const { return options_.poison; }

 private:
  // A failed call: what the device saw, else how the process ended.
  Conclusion ConcludeEnd(const absl::Status& status, const std::string& doing);

  const Options options_;
  RoleStarter* const starter_;
  Cancellation* const cancellation_;
  UniqueFd report_;
  std::unique_ptr<Role> role_;
  Cancellation::Callback on_cancel_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_CANDIDATE_H_
