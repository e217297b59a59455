#include "coordinator/placement/placement.h"

#include <catch2/catch.hpp>
#include <future>

#include "common/rpc/grant.h"

namespace kmosaic {
namespace {

v1::WorkerSyncRequest Worker(const std::string& id, uint32_t slots) {
  v1::WorkerSyncRequest request;
  request.set_worker(id);
  request.set_incarnation("first");
  request.set_endpoint(id + ":1");
  v1::RoleSlots* out = request.add_slots();
  out->set_role(v1::ROLE_VERIFY);
  out->set_total(slots);
  return request;
}

// Registers; the reply to its second sync.
v1::WorkerSyncResponse Register(Placement& placement, const std::string& id, uint32_t slots) {
  CHECK(placement.Sync(Worker(id, slots)).next_sync().seconds() == 0);
  return placement.Sync(Worker(id, slots));
}

struct Asked {
  uint64_t ticket = 0;
  std::future<absl::StatusOr<v1::Slot>> answer;
  bool Answered() const {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
};

Asked Ask(Placement& placement, SlotRequest request = {}) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<v1::Slot>>>();
  Asked asked;
  asked.answer = promise->get_future();
  asked.ticket = placement.Acquire(std::move(request), [promise](absl::StatusOr<v1::Slot> slot) {
    promise->set_value(std::move(slot));
  });
  return asked;
}

TEST_CASE("a grant verifies with the key that the worker was told") {
  FakeClock clock;
  Placement placement({}, clock);
  v1::WorkerSyncResponse response = Register(placement, "w1", 1);
  CHECK(response.next_sync().seconds() == 5);
  auto slot = Ask(placement).answer.get();
  REQUIRE(slot.ok());
  auto grant = VerifyGrant(slot->grant(), response.grant_key(), clock.Wall());
  REQUIRE(grant.ok());
  CHECK(grant->slot == slot->id());
  CHECK(grant->worker == "w1");
  CHECK(grant->role == v1::ROLE_VERIFY);
  CHECK(slot->ttl().seconds() == 20 * 60);
}

TEST_CASE("two starts of the coordinator share neither key nor slot ids") {
  FakeClock clock;
  Placement first({}, clock);
  Placement second({}, clock);
  CHECK(Register(first, "w1", 1).grant_key() != Register(second, "w1", 1).grant_key());
  auto slot = Ask(first).answer.get();
  REQUIRE(slot.ok());
  CHECK(Ask(second).answer.get()->id() != slot->id());
}

TEST_CASE("a release on another thread answers who waits") {
  FakeClock clock;
  Placement placement({}, clock);
  Register(placement, "w1", 1);
  auto slot = Ask(placement).answer.get();
  Asked waits = Ask(placement);
  CHECK_FALSE(waits.Answered());
  std::thread([&] { placement.Release(slot->id()); }).join();
  CHECK(waits.answer.get().ok());
}

TEST_CASE("the timer ends waits by itself") {
  FakeClock clock;
  Placement placement({}, clock);
  Asked waits = Ask(placement);
  clock.Advance(absl::Minutes(1));
  CHECK(absl::IsUnavailable(waits.answer.get().status()));
}

TEST_CASE("a callback may call back") {
  FakeClock clock;
  Placement placement({}, clock);
  Register(placement, "w1", 1);
  std::promise<absl::StatusOr<v1::Slot>> second;
  placement.Acquire({}, [&](absl::StatusOr<v1::Slot> slot) {
    REQUIRE(slot.ok());
    placement.Release(slot->id());
    placement.Acquire({}, [&](absl::StatusOr<v1::Slot> again) { second.set_value(again); });
  });
  CHECK(second.get_future().get().ok());
}

TEST_CASE("cancelling is answered once and only while it waits") {
  FakeClock clock;
  Placement placement({}, clock);
  Register(placement, "w1", 1);
  Asked granted = Ask(placement);
  CHECK_FALSE(placement.Cancel(granted.ticket));
  Asked waits = Ask(placement);
  CHECK(placement.Cancel(waits.ticket));
  CHECK(absl::IsCancelled(waits.answer.get().status()));
}

TEST_CASE("what waits when the placement goes is cancelled") {
  FakeClock clock;
  Asked waits;
  {
    Placement placement({}, clock);
    waits = Ask(placement);
  }
  CHECK(absl::IsCancelled(waits.answer.get().status()));
}

TEST_CASE("the wait of a granted request is observed") {
  FakeClock clock;
  std::vector<absl::Duration> waits;
  Placement placement({}, clock, [&](v1::Role, absl::Duration waited) { waits.push_back(waited); });
  Asked asked = Ask(placement);
  clock.Advance(absl::Seconds(3));
  Register(placement, "w1", 1);
  CHECK(asked.answer.get().ok());
  CHECK(waits == std::vector<absl::Duration>{absl::Seconds(3)});
}

TEST_CASE("draining an unknown worker is NOT_FOUND") {
  FakeClock clock;
  Placement placement({}, clock);
  CHECK(absl::IsNotFound(placement.Drain("ghost", true).status()));
  Register(placement, "w1", 1);
  auto worker = placement.Drain("w1", true);
  REQUIRE(worker.ok());
  CHECK(worker->state() == v1::WORKER_STATE_DRAINING);
  CHECK(placement.Sync(Worker("w1", 1)).drain());
}

}  // namespace
}  // namespace kmosaic
