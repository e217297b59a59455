// Whether a worker should take work, judged by how its evaluations end.
#ifndef KMOSAIC_GPU_WORKER_SERVICE_HEALTH_MONITOR_H_
#define KMOSAIC_GPU_WORKER_SERVICE_HEALTH_MONITOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace kmosaic {

// Pure: time comes in with each call and never goes back. A machine that spoils several
// evaluations in a row, or many of the latest, is sick until its self-test passes. A test is due
// at once the first time; pauses before further ones double, also when it falls sick again soon
// after it was well.
class HealthMonitor {
 public:
  struct Options {
    uint32_t failures_in_a_row = 3;
    // A machine that fails now and then: so many of the latest `window` evaluations.
    uint32_t failures_in_window = 8;
    uint32_t window = 20;
    absl::Duration first_pause = absl::Seconds(5);
    absl::Duration longest_pause = absl::Minutes(5);
    // Pauses begin anew when it was well for so long.
    absl::Duration forgiven_after = absl::Minutes(10);
  };
  explicit HealthMonitor(Options options) : options_(options) {}

  // An evaluation ended; `failure` says how the machine spoiled it, nothing that it did not.
  // While sick this changes nothing: what ended began before.
  void OnEvaluation(const std::optional<std::string>& failure, absl::Duration now);
  void OnSelfTest(const absl::Status& result, absl::Duration now);

  bool well() const { return reason_.empty(); }
  // Why it is sick, for people; empty when it is well.
  const std::string& reason() const { return reason_; }
  // When the self-test is due; InfiniteDuration while it is well.
  absl::Duration test_at() const { return test_at_; }

 private:
  void FallSick(std::string reason, absl::Duration now);
  void ScheduleTest(absl::Duration now);

  const Options options_;
  std::string reason_;
  uint32_t in_a_row_ = 0;
  std::deque<bool> latest_;  // true: spoiled
  absl::Duration pause_;     // before the next test
  absl::Duration well_since_;
  absl::Duration test_at_ = absl::InfiniteDuration();
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SERVICE_HEALTH_MONITOR_H_
