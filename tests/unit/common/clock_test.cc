#include "common/base/clock.h"

#include <catch2/catch.hpp>

namespace kmosaic {

TEST_CASE("FakeClock advances both clocks, and jumps the wall clock alone") {
  FakeClock clock;
  absl::Time wall = clock.Wall();
  absl::Duration steady = clock.Steady();
  clock.Advance(absl::Seconds(3));
  CHECK(clock.Wall() - wall == absl::Seconds(3));
  CHECK(clock.Steady() - steady == absl::Seconds(3));
  clock.JumpWall(-absl::Hours(24));
  CHECK(clock.Wall() - wall == absl::Seconds(3) - absl::Hours(24));
  CHECK(clock.Steady() - steady == absl::Seconds(3));
}

TEST_CASE("SystemClock's steady time never goes back") {
  SystemClock clock;
  absl::Duration last = clock.Steady();
  for (int i = 0; i < 1000; ++i) {
    absl::Duration now = clock.Steady();
    REQUIRE(now >= last);
    last = now;
  }
}

}  // namespace kmosaic
