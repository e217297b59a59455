#include "cli/system/fleet.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/unit/cli/fake_services.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

struct FleetTest {
  FakeCoordinator fake;
  SystemClock clock;
  Interrupt stop;

  void Add(v1::WorkerState state) {
    std::lock_guard lock(fake.admin.mutex);
    fake.admin.fleet.add_workers()->set_state(state);
  }
  absl::Status Await(int count, absl::Duration patience) {
    return AwaitWorkers(fake.target(), count, patience, clock, stop);
  }
};

}  // namespace

TEST_CASE_METHOD(FleetTest,
                 "Workers that take work are waited for, those that do not do not count") {
  Add(v1::WORKER_STATE_LOST);
  Add(v1::WORKER_STATE_BUSY);
  absl::Status status = Await(2, absl::ZeroDuration());
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("lists 1 of 2"));
  std::thread late([this] { Add(v1::WORKER_STATE_READY); });
  CHECK(Await(2, absl::Minutes(1)).ok());
  late.join();
}

TEST_CASE_METHOD(FleetTest, "Waiting for workers ends with Ctrl-C") {
  std::thread user([this] { stop.Trigger(); });
  CHECK(absl::IsCancelled(Await(1, absl::Minutes(1))));
  user.join();
}

TEST_CASE_METHOD(FleetTest, "No worker to wait for needs no coordinator") {
  CHECK(AwaitWorkers("127.0.0.1:1", 0, absl::ZeroDuration(), clock, stop).ok());
}
