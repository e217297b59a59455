#include "gpu_worker/service/health_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kmosaic {

void HealthMonitor::OnEvaluation(const std::optional<std::string>& failure, absl::Duration now) {
  if (!well()) return;
  latest_.push_back(failure.has_value());
  if (latest_.size() > options_.window) latest_.pop_front();
  in_a_row_ = failure ? in_a_row_ + 1 : 0;
  if (!failure) {
    if (now - well_since_ >= options_.forgiven_after) pause_ = absl::ZeroDuration();
    return;
  }
  auto spoiled = static_cast<uint32_t>(std::count(latest_.begin(), latest_.end(), true));
  if (in_a_row_ >= options_.failures_in_a_row) {
    FallSick(absl::StrCat(in_a_row_, " evaluations in a row failed here; the last: ", *failure),
             now);
  } else if (spoiled >= options_.failures_in_window) {
    FallSick(absl::StrCat(spoiled, " of the latest ", latest_.size(),
                          " evaluations failed here; the last: ", *failure),
             now);
  }
}

void HealthMonitor::OnSelfTest(const absl::Status& result, absl::Duration now) {
  if (well()) return;
  if (result.ok()) {
    reason_.clear();
    well_since_ = now;
    test_at_ = absl::InfiniteDuration();
    return;
  }
  reason_ = absl::StrCat("the self-test failed: ", std::string(result.message()));
  ScheduleTest(now);
}

void HealthMonitor::FallSick(std::string reason, absl::Duration now) {
  if (now - well_since_ >= options_.forgiven_after) pause_ = absl::ZeroDuration();
  reason_ = std::move(reason);
  latest_.clear();
  in_a_row_ = 0;
  ScheduleTest(now);
}

void HealthMonitor::ScheduleTest(absl::Duration now) {
  test_at_ = now + pause_;
  pause_ = std::clamp(2 * pause_, options_.first_pause, options_.longest_pause);
}

}  // namespace kmosaic
