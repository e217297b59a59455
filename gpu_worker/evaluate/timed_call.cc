#include "gpu_worker/evaluate/timed_call.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kmosaic {

absl::StatusOr<TimedCall> ParseTimedCall(const nlohmann::json& reply, absl::Duration outside) {
  TimedCall call;
  call.outside = absl::ToDoubleMicroseconds(outside);
  for (auto [name, target] :
       {std::pair{"event_us", &call.event}, {"joined_us", &call.joined}, {"host_us", &call.host}}) {
    auto found = reply.find(name);
    if (found == reply.end() || !found->is_number()) {
      return absl::InvalidArgumentError(absl::StrCat("a timed call without ", name));
    }
    *target = found->get<double>();
    if (!std::isfinite(*target) || *target < 0) {
      return absl::InvalidArgumentError(absl::StrCat("a timed call with ", name, " ", *target));
    }
  }
  return call;
}

}  // namespace kmosaic
