#include "coordinator/placement/demand.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

constexpr v1::Role kRole = v1::ROLE_VERIFY;

TEST_CASE("no requests want no workers") {
  Demand demand(absl::ZeroDuration());
  CHECK(demand.WantedWorkers(kRole, 0, absl::Seconds(10)) == 0);
}

TEST_CASE("somebody who waits wants a worker even when none was ever seen") {
  Demand demand(absl::ZeroDuration());
  CHECK(demand.WantedWorkers(kRole, 1, absl::Seconds(1)) == 1);
}

TEST_CASE("wanted workers follow rate times service time over slots per worker") {
  Demand demand(absl::ZeroDuration());
  demand.SetSlotsPerWorker(kRole, 4);
  // Two requests a second that hold a slot for 20 s each: 40 slots, 10 workers.
  absl::Duration now;
  for (int i = 0; i < 3000; ++i) {
    now += absl::Milliseconds(500);
    demand.Granted(kRole, now);
    demand.Released(kRole, absl::Seconds(20), now);
  }
  uint64_t wanted = demand.WantedWorkers(kRole, 0, now);
  CHECK(wanted >= 10);
  CHECK(wanted <= 11);
  // 60 waiting requests of 20 s each within a minute: 20 slots, 5 workers more.
  uint64_t with_backlog = demand.WantedWorkers(kRole, 60, now);
  CHECK(with_backlog >= 15);
  CHECK(with_backlog <= 16);
}

TEST_CASE("demand fades when requests stop") {
  Demand demand(absl::ZeroDuration());
  absl::Duration now;
  for (int i = 0; i < 100; ++i) {
    now += absl::Seconds(1);
    demand.Granted(kRole, now);
    demand.Released(kRole, absl::Seconds(5), now);
  }
  CHECK(demand.WantedWorkers(kRole, 0, now) >= 4);
  CHECK(demand.WantedWorkers(kRole, 0, now + absl::Hours(1)) == 0);
}

TEST_CASE("the last known slots per worker serve when no worker is left") {
  Demand demand(absl::ZeroDuration());
  demand.SetSlotsPerWorker(kRole, 100);
  demand.SetSlotsPerWorker(kRole, 0);
  CHECK(demand.WantedWorkers(kRole, 60, absl::Seconds(1)) == 1);
}

}  // namespace
}  // namespace kmosaic
