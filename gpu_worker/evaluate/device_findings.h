// What the emulated device noticed while it ran a candidate.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_DEVICE_FINDINGS_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_DEVICE_FINDINGS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_worker/evaluate/verdict.h"

namespace kmosaic {

struct DeviceFinding {
  std::string kind;
  std::string kernel;
  std::vector<int64_t> block;
  std::vector<int64_t> thread;
  std::string detail;
};

// Findings of a reply ("findings": [...]) or of the report that survives a crash (one
// JSON object per line). What is not a finding is left out; at most 64 are kept.
std::vector<DeviceFinding> ParseFindings(const nlohmann::json& list);
std::vector<DeviceFinding> ParseReport(std::string_view lines);

// "softmax, block (1,0,0), thread (31,0,0): byte 1024 of a tensor of 1024 bytes".
std::string Words(const DeviceFinding& finding);

// The verdict that the worst finding stands for whatever the outputs are:
// OUT_OF_BOUNDS, ILLEGAL_ACCESS (misaligned), ILLEGAL_LAUNCH, DATA_RACE, TIME_LIMIT (a deadlock
// would hang a GPU), RUNTIME_ERROR (a failed device assertion), UNSUPPORTED. Nothing
// when there are only such as need not spoil the result.
std::optional<Conclusion> Conclude(const std::vector<DeviceFinding>& findings);

// The others, for people: undefined or doubtful, but decided by the outputs.
std::vector<std::string> Notes(const std::vector<DeviceFinding>& findings);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_DEVICE_FINDINGS_H_
