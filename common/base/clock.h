// Time as a constructor argument.
#ifndef KMOSAIC_COMMON_BASE_CLOCK_H_
#define KMOSAIC_COMMON_BASE_CLOCK_H_

#include <mutex>

#include "absl/time/time.h"

namespace kmosaic {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // For people and records; may jump.
  virtual absl::Time Wall() const = 0;
  // Since an arbitrary moment of this process; never goes back. All deadlines and
  // leases are computed with it.
  virtual absl::Duration Steady() const = 0;
};

class SystemClock : public Clock {
 public:
  absl::Time Wall() const override;
  absl::Duration Steady() const override;
};

// Moves only by hand.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time wall = absl::FromUnixSeconds(1'700'000'000)) : wall_(wall) {}
  absl::Time Wall() const override;
  absl::Duration Steady() const override;
  // Moves both clocks.
  void Advance(absl::Duration by);
  // Moves the wall clock alone, as an administrator or NTP would.
  void JumpWall(absl::Duration by);

 private:
  mutable std::mutex mutex_;
  absl::Time wall_;
  absl::Duration steady_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_CLOCK_H_
