// One process that runs a solution.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_CANDIDATE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_CANDIDATE_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
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
  Parcel outputs;
  Parcel inputs_after;
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
    // Where the trees of calls lie.
    BlockMemory memory = BlockMemory::kHost;
    std::string artifact;  // directory
    uint64_t weight_seed = 0;
    std::string weights_on = "cpu";  // as TaskShape's
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

  // Timed calls (harness/timing.py), after Load, on the inputs of `task_case`. `notes` gets
  // what the process has to say about how it measures.
  Conclusion BeginTiming(const TaskCase& task_case, std::vector<std::string>* notes);
  // The answer to one timed call, not looked into.
  std::variant<nlohmann::json, Conclusion> TimeCall(uint64_t key);
  // What the last timed call gave.
  std::variant<Parcel, Conclusion> TimedOutputs();

  std::string Output();
  uint8_t poison() const { return options_.poison; }

 private:
  // A failed call: what the device saw, else how the process ended.
  Conclusion ConcludeEnd(const absl::Status& status, const std::string& doing);
  // Sends what a call needs: `request` is completed with inputs, outputs and parameters.
  absl::StatusOr<Frame> CallWithInputs(nlohmann::json request, const TaskCase& task_case);
  // A request whose refusal is a conclusion.
  std::variant<Frame, Conclusion> Ask(const nlohmann::json& request, const std::string& doing);

  const Options options_;
  RoleStarter* const starter_;
  Cancellation* const cancellation_;
  UniqueFd report_;
  std::unique_ptr<Role> role_;
  Cancellation::Callback on_cancel_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_CANDIDATE_H_
