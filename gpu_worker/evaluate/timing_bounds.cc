#include "gpu_worker/evaluate/timing_bounds.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu_worker/evaluate/timing_statistics.h"

namespace kmosaic {
namespace {

// What a join may take longer than in the baseline's process before it means work.
constexpr double kJoinSlackUs = 10;
constexpr double kJoinSlackShare = 0.05;
// The daemon's clock sees messages and the scheduling of two processes: honest ones differ by
// some tens of microseconds at the median. A multiple of that, and as much as the
// preparation itself takes.
constexpr double kOutsideSlackUs = 500;
constexpr double kHostSlackUs = 100;
// Peaks of data sheets are never reached; far below them is another matter.
constexpr double kFloorShare = 0.5;
constexpr double kSmallestFloorUs = 5;

template <typename Function>
double MedianOf(const std::vector<TimedCall>& calls, Function function) {
  std::vector<double> values;
  values.reserve(calls.size());
  for (const TimedCall& call : calls) values.push_back(function(call));
  return Median(std::move(values));
}

}  // namespace

CallSurroundings SurroundingsOf(const std::vector<TimedCall>& calls) {
  CallSurroundings around;
  around.outside = MedianOf(calls, [](const TimedCall& c) { return c.outside - c.joined; });
  around.host = MedianOf(calls, [](const TimedCall& c) { return c.host - c.joined; });
  around.join = MedianOf(calls, [](const TimedCall& c) { return c.joined - c.event; });
  return around;
}

CallTimes TimesOf(const std::vector<TimedCall>& calls, const CallSurroundings& baseline) {
  CallTimes times;
  double event = MedianOf(calls, [](const TimedCall& c) { return c.event; });
  double join = SurroundingsOf(calls).join;
  times.elsewhere = join > baseline.join + std::max(kJoinSlackUs, kJoinSlackShare * event);
  for (const TimedCall& call : calls) {
    times.times_us.push_back(times.elsewhere ? std::max(call.event, call.joined - baseline.join)
                                             : call.event);
  }
  return times;
}

std::optional<std::string> FindImpossibleTime(const std::vector<TimedCall>& calls,
                                              const CallTimes& times,
                                              const CallSurroundings& baseline,
                                              std::optional<double> memory_floor_us) {
  double median = Median(times.times_us);
  double claimed = 0;
  double seen = 0;
  for (const TimedCall& call : calls) {
    claimed += std::max(call.event, call.joined);
    seen += call.outside;
  }
  if (claimed > seen) {
    return absl::StrFormat("the process reports %.1f us for its calls, and %.1f us passed", claimed,
                           seen);
  }
  CallSurroundings own = SurroundingsOf(calls);
  double hidden = own.outside - baseline.outside;
  if (hidden > std::max(kOutsideSlackUs, baseline.outside) && hidden > median) {
    return absl::StrFormat(
        "the process reports %.1f us a call, but took %.1f us more for each than that and what the "
        "reference's process takes around a call",
        median, hidden);
  }
  double unaccounted = own.host - baseline.host;
  if (unaccounted > std::max(kHostSlackUs, median / 2)) {
    return absl::StrFormat(
        "events say %.1f us a call, the host's clock in the same process says %.1f us more", median,
        unaccounted);
  }
  if (memory_floor_us.has_value() && *memory_floor_us >= kSmallestFloorUs &&
      median < kFloorShare * *memory_floor_us) {
    return absl::StrFormat(
        "%.1f us a call is less than half of the %.1f us that reading the inputs and writing the "
        "outputs once takes at this GPU's peak bandwidth",
        median, *memory_floor_us);
  }
  return std::nullopt;
}

}  // namespace kmosaic
