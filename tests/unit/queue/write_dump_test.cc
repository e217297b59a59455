// Makes the fixtures from which later schemas are tested: a store in the present schema with
// jobs and items in every state. Run by hand when the schema is about to change:
//
//   KMOSAIC_STORE_DUMP=tests/unit/store/schemas/schemaN.dump queue_tests "[dump]"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/queue/queue_fixture.h"
#include "tests/unit/store/store_dump.h"

namespace kmosaic {
namespace {

// Items of `job` by number: done (verified, with steps), done (wrong), failed, dead, handed
// back, delayed, leased with a step, leased, and the rest untouched.
std::string JobInEveryState(QueueFixture& queue, const JobShape& shape) {
  std::string job = queue.Submit(shape).id();
  auto lease = [&] { return queue.LeaseOne("runner"); };
  v1::LeaseToken done = lease();
  REQUIRE(queue.Record(ReplyStep(done, 0, std::string(6000, 'r'))).ok());
  REQUIRE(queue.Record(ResultStep(done, 1)).ok());
  REQUIRE(queue.Complete(Completion(done)).ok());
  REQUIRE(queue.Complete(Completion(lease(), false)).ok());
  REQUIRE(queue.Release(Releasing(lease(), v1::FAILURE_CLASS_FINAL)).ok());
  for (int death = 0; death < 3; ++death) {
    v1::LeaseToken dying = lease();
    REQUIRE(dying.item().number() == 3);
    queue.Advance(absl::Seconds(31));
    queue.Tick();
  }
  v1::LeaseToken back = lease();
  v1::LeaseToken delayed = lease();
  v1::LeaseToken stepped = lease();
  REQUIRE(queue.Record(ReplyStep(stepped, 0)).ok());
  lease();
  v1::ReleaseRequest hand_back = Releasing(back, v1::FAILURE_CLASS_UNSPECIFIED);
  hand_back.set_handed_back(true);
  REQUIRE(queue.Release(hand_back).ok());
  v1::ReleaseRequest later = Releasing(delayed, v1::FAILURE_CLASS_INFRASTRUCTURE, "worker-1");
  later.mutable_delay()->set_seconds(3600);
  REQUIRE(queue.Release(later).ok());
  return job;
}

TEST_CASE("a store in the present schema is written as a dump", "[.][dump]") {
  const char* path = std::getenv("KMOSAIC_STORE_DUMP");
  REQUIRE(path != nullptr);
  QueueFixture queue;
  JobInEveryState(queue, {.tasks = 6, .samples = 2, .priority = 5, .request_id = "first"});
  // Shares tasks with the first; its leases are told to stop, the rest is cancelled.
  std::string cancelled = JobInEveryState(queue, {.tasks = 10, .priority = 8});
  REQUIRE(queue.Cancel(cancelled).ok());
  std::string paused = queue.Submit({.tasks = 3, .priority = 7, .prefix = "paused"}).id();
  REQUIRE(queue.Pause(paused).ok());
  std::string finished = queue.Submit({.tasks = 1, .priority = 9, .prefix = "finished"}).id();
  while (true) {
    SyncResult granted = queue.Sync("finisher", 1);
    REQUIRE(granted.granted.size() == 1);
    REQUIRE(queue.Complete(Completion(granted.granted[0].token)).ok());
    if (granted.granted[0].token.item().job() == finished) break;
  }
  queue.Submit({.tasks = 4, .samples = 3, .request_id = "untouched", .prefix = "fresh"});
  queue.LeaseOne("holder");
  std::string contradiction = FindContradiction(queue.store());
  INFO(contradiction);
  REQUIRE(contradiction.empty());
  std::ofstream(path) << DumpStore(queue.store());
}

}  // namespace
}  // namespace kmosaic
