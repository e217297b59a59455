#include <catch2/catch.hpp>

#include "tests/unit/cli/fake_services.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

struct Fixture {
  FakeCoordinator fake;
  TestHost run;

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--coordinator", fake.target()});
    return run.Run(arguments);
  }
  void AddWorker(v1::WorkerState state) {
    v1::Worker& worker = *fake.admin.fleet.add_workers();
    worker.set_id("worker-0");
    worker.set_state(state);
    worker.set_endpoint("127.0.0.1:9");
    (*worker.mutable_labels())["device"] = "emulated";
    worker.mutable_device()->set_name("emulated x86-64");
    v1::WorkerSlots& slots = *worker.add_slots();
    slots.set_role(v1::ROLE_VERIFY);
    slots.set_total(2);
    slots.set_used(1);
  }
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "worker list shows workers and runners") {
  AddWorker(v1::WORKER_STATE_SICK);
  fake.admin.fleet.mutable_workers(0)->set_health_reason("disk is full");
  fake.admin.fleet.add_runners()->set_id("runner-0");
  CHECK(Run({"worker", "list"}) == 0);
  CHECK(Contains(run.out.str(), "sick: disk is full"));
  CHECK(Contains(run.out.str(), "verify 1/2"));
  CHECK(Contains(run.out.str(), "device=emulated"));
  CHECK(Contains(run.out.str(), "runner-0"));
  CHECK(Run({"worker", "list", "-o", "json"}) == 0);
  CHECK(run.Json()["workers"][0]["state"] == "sick");
}

TEST_CASE_METHOD(Fixture, "An empty fleet is told with what to do") {
  CHECK(Run({"worker", "list"}) == 0);
  CHECK(Contains(run.out.str(), "No worker is registered"));
  CHECK(Contains(run.out.str(), "No agent runner is registered"));
}

TEST_CASE_METHOD(Fixture, "worker drain and its undoing") {
  CHECK(Run({"worker", "drain", "worker-0"}) == 0);
  CHECK(fake.admin.drained);
  CHECK(Run({"worker", "drain", "worker-0", "--undo"}) == 0);
  CHECK_FALSE(fake.admin.drained);
  CHECK(Run({"worker", "drain", "worker-9"}) == 2);
}

TEST_CASE_METHOD(Fixture, "health says no while nothing could be done") {
  CHECK(Run({"health"}) == 1);
  CHECK(Contains(run.out.str(), "version 9.9.9"));
  AddWorker(v1::WORKER_STATE_DRAINING);
  fake.admin.fleet.add_runners()->set_id("runner-0");
  CHECK(Run({"health"}) == 1);
  fake.admin.fleet.mutable_workers(0)->set_state(v1::WORKER_STATE_READY);
  CHECK(Run({"health", "-o", "json"}) == 0);
  CHECK(run.Json()["workers_ready"] == 1);
}
