// Whether reported times can be true. Pure.
//
// A solution's process says how long a call took; the daemon sees when its answer came. Between
// the two lies the preparation (fresh inputs, emptied L2, a message each way), which is the
// same for the reference's process, so what a solution's process takes beyond that and its
// own times was spent on something that it does not count.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_TIMING_BOUNDS_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_TIMING_BOUNDS_H_

#include <optional>
#include <string>
#include <vector>

#include "gpu_worker/evaluate/timed_call.h"

namespace kmosaic {

// Medians in microseconds of what surrounds a call, in a process.
struct CallSurroundings {
  double outside = 0;  // outside - joined: preparation and messages
  double host = 0;     // host - joined
  double join = 0;     // joined - event: a join when nothing is left to wait for
};
CallSurroundings SurroundingsOf(const std::vector<TimedCall>& calls);

// The time of each call. Where a solution's join takes longer than the baseline's, work
// ran elsewhere than on the current stream, and counts; `elsewhere` says whether.
struct CallTimes {
  std::vector<double> times_us;
  bool elsewhere = false;
};
CallTimes TimesOf(const std::vector<TimedCall>& calls, const CallSurroundings& baseline);

// The reason, in words for the report, why `calls` cannot have taken what they say; nothing
// when they can. `memory_floor_us`: time to move the bytes that have to be moved, nothing where
// that is not known.
std::optional<std::string> FindImpossibleTime(const std::vector<TimedCall>& calls,
                                              const CallTimes& times,
                                              const CallSurroundings& baseline,
                                              std::optional<double> memory_floor_us);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_TIMING_BOUNDS_H_
