#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace kmosaic {

absl::Time SystemClock::Wall() const { return absl::Now(); }

absl::Duration SystemClock::Steady() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Time FakeClock::Wall() const {
  std::lock_guard lock(mutex_);
  return wall_;
}

absl::Duration FakeClock::Steady() const {
  std::lock_guard lock(mutex_);
  return steady_;
}

void FakeClock::Advance(absl::Duration by) {
  std::lock_guard lock(mutex_);
  wall_ += by;
  steady_ += by;
}

void FakeClock::JumpWall(absl::Duration by) {
  std::lock_guard lock(mutex_);
  wall_ += by;
}

}  // namespace kmosaic
