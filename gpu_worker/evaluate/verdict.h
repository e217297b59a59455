// What one part of an evaluation concluded.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_VERDICT_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_VERDICT_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "gpu_worker/sandbox/role_process.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

struct Conclusion {
  kernelmosaic::v1::Verdict verdict = kernelmosaic::v1::VERDICT_PASSED;
  // One line, safe to show to a model; empty when PASSED.
  std::string reason;
  std::optional<kernelmosaic::v1::Mismatch> mismatch;
  // The GPU's memory ran out, in whichever process: says nothing while others use it.
  bool device_memory = false;
  // Of INVALID_TASK: outputs of zeros pass every check at these shapes.
  bool degenerate = false;

  bool passed() const { return verdict == kernelmosaic::v1::VERDICT_PASSED; }
};

// Of an answer of a solution's process that is no answer.
Conclusion ConcludeTampered(const absl::Status& status);

// That values could not be looked at (Examiner): INVALID_ARGUMENT is the solution's tampering,
// RESOURCE_EXHAUSTED the GPU's memory, anything else the machine's trouble.
Conclusion ConcludeExamination(const absl::Status& status);

// Whose process it was.
enum class Untrusted { kReference, kSolution };

// Of a process that gives no more answers. A solution's end is the solution's fault, a
// reference's end means INVALID_TASK, or UNSUPPORTED where it hit this worker's limits.
// `doing` completes "... while it was ".
Conclusion ConcludeFailure(const RoleFailure& failure, Untrusted whose, std::string_view doing);

// Of {"ok": false, "verdict", "error"}. The name comes from a process that holds
// untrusted code: only verdicts that such a process may claim about itself are taken,
// any other becomes RUNTIME_ERROR (of a solution) or INVALID_TASK (of a reference).
// `entry` says that a solution keeps the cuda contract, whose binding can be invalid.
Conclusion ConcludeRefusal(std::string_view verdict, std::string_view error, Untrusted whose,
                           bool entry);

// The machine failed.
Conclusion ConcludeMachine(const absl::Status& status);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_VERDICT_H_
