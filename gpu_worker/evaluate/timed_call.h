// One timed call of a program, as its process tells it and as it looks from outside.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_TIMED_CALL_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_TIMED_CALL_H_

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kmosaic {

// Microseconds. The first three come from a process with untrusted code in it
// (harness/timing.py says what they are).
struct TimedCall {
  double event = 0;
  double joined = 0;
  double host = 0;
  // From the request to the answer by the daemon's clock: the call and its preparation.
  double outside = 0;
};

// Of the answer to time_sample. INVALID_ARGUMENT: what is no answer (a number is missing, not
// finite or negative).
absl::StatusOr<TimedCall> ParseTimedCall(const nlohmann::json& reply, absl::Duration outside);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_TIMED_CALL_H_
