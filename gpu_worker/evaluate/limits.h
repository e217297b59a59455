// Bounds on what one evaluation may use.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_LIMITS_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_LIMITS_H_

#include "absl/time/time.h"
#include "gpu_worker/sandbox/role_process.h"

namespace kmosaic {

struct EvaluationLimits {
  RoleLimits role;
  // Importing a file and recording its sources.
  absl::Duration collect = absl::Seconds(60);
  // Finding shapes for a reference and constructing it.
  absl::Duration reference_load = absl::Minutes(3);
  // Inputs and expected outputs of one seed.
  absl::Duration reference_case = absl::Minutes(2);
  // Importing a solution with its library, and constructing it.
  absl::Duration load = absl::Seconds(60);
  // One call of a solution, with the transfer of its tensors.
  absl::Duration run = absl::Seconds(60);
  // Of one block of tensors from a role.
  uint64_t block_bytes = uint64_t{8} << 30;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_LIMITS_H_
