#include "coordinator/placement/placement_table.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

class Fleet {
 public:
  explicit Fleet(PlacementTable::Options options = {}) : table(options, absl::ZeroDuration()) {}

  void Worker(const std::string& id, uint32_t slots, std::map<std::string, std::string> labels = {},
              const std::string& incarnation = "first", v1::Role role = v1::ROLE_VERIFY) {
    v1::WorkerSyncRequest request = Say(id, slots, std::move(labels), incarnation, role);
    // With the first sync of an incarnation it only introduces itself.
    if (table.Sync(request, absl::UnixEpoch(), now).sync_soon) {
      table.Sync(request, absl::UnixEpoch(), now);
    }
  }

  static v1::WorkerSyncRequest Say(const std::string& id, uint32_t slots,
                                   std::map<std::string, std::string> labels = {},
                                   const std::string& incarnation = "first",
                                   v1::Role role = v1::ROLE_VERIFY) {
    v1::WorkerSyncRequest request;
    request.set_worker(id);
    request.set_incarnation(incarnation);
    request.set_endpoint(id + ":1");
    request.mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
    for (auto& [key, value] : labels) (*request.mutable_labels())[key] = value;
    v1::RoleSlots* out = request.add_slots();
    out->set_role(role);
    out->set_total(slots);
    return request;
  }

  uint64_t Ask(const std::string& group, SlotRequest request = {}) {
    request.group = group;
    if (request.holder.empty()) request.holder = group;
    table.Enqueue(++tickets, std::move(request), now);
    Collect();
    return tickets;
  }

  void Collect() {
    for (auto& outcome : table.TakeOutcomes()) {
      REQUIRE(outcomes.count(outcome.ticket) == 0);
      outcomes.emplace(outcome.ticket, outcome.result);
      if (outcome.result.ok()) served.push_back(outcome.ticket);
    }
  }

  bool Waits(uint64_t ticket) {
    Collect();
    return outcomes.count(ticket) == 0;
  }

  PlacementTable::Granted Slot(uint64_t ticket) {
    Collect();
    REQUIRE(outcomes.count(ticket) == 1);
    INFO(outcomes.at(ticket).status().ToString());
    REQUIRE(outcomes.at(ticket).ok());
    return *outcomes.at(ticket);
  }

  absl::Status Failure(uint64_t ticket) {
    Collect();
    REQUIRE(outcomes.count(ticket) == 1);
    REQUIRE_FALSE(outcomes.at(ticket).ok());
    return outcomes.at(ticket).status();
  }

  void Release(uint64_t ticket) {
    CHECK(table.Release(Slot(ticket).slot, now));
    Collect();
  }

  void Pass(absl::Duration by) {
    now += by;
    table.Tick(now);
    Collect();
  }

  PlacementTable table;
  absl::Duration now;
  uint64_t tickets = 0;
  std::map<uint64_t, absl::StatusOr<PlacementTable::Granted>> outcomes;
  // Tickets in the order in which they got a slot.
  std::vector<uint64_t> served;
};

SlotRequest With(std::map<std::string, std::string> labels) {
  SlotRequest request;
  request.requirement.labels = std::move(labels);
  return request;
}

TEST_CASE("a free slot is granted at once and a full worker makes the next one wait") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  uint64_t first = fleet.Ask("a");
  uint64_t second = fleet.Ask("a");
  CHECK(fleet.Slot(first).worker == "w1");
  CHECK(fleet.Slot(first).endpoint == "w1:1");
  CHECK(fleet.Waits(second));
  fleet.Release(first);
  CHECK(fleet.Slot(second).slot != fleet.Slot(first).slot);
}

TEST_CASE("a worker gets work from its second sync on, when it has the key of grants") {
  Fleet fleet;
  uint64_t ticket = fleet.Ask("a");
  CHECK(fleet.table.Sync(Fleet::Say("w1", 1), absl::UnixEpoch(), fleet.now).sync_soon);
  CHECK(fleet.Waits(ticket));
  CHECK_FALSE(fleet.table.Sync(Fleet::Say("w1", 1), absl::UnixEpoch(), fleet.now).sync_soon);
  CHECK(fleet.Slot(ticket).worker == "w1");
}

TEST_CASE("releasing a slot twice frees one slot once") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  uint64_t first = fleet.Ask("a");
  uint64_t second = fleet.Ask("a");
  uint64_t third = fleet.Ask("a");
  fleet.Release(first);
  CHECK_FALSE(fleet.table.Release(fleet.Slot(first).slot, fleet.now));
  CHECK_FALSE(fleet.Waits(second));
  CHECK(fleet.Waits(third));
}

TEST_CASE("inside a group the first to come is the first served") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  uint64_t holder = fleet.Ask("a");
  uint64_t first = fleet.Ask("a");
  uint64_t second = fleet.Ask("a");
  fleet.Release(holder);
  fleet.Release(first);
  CHECK(fleet.served == std::vector<uint64_t>{holder, first, second});
}

TEST_CASE("a group with a long line takes turns with one that has a short line") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  uint64_t running = fleet.Ask("long");
  for (int i = 0; i < 50; ++i) fleet.Ask("long");
  uint64_t late = fleet.Ask("short");
  // One more of the long line at most, since both hold nothing when the slot comes back.
  fleet.Release(running);
  if (fleet.Waits(late)) fleet.Release(fleet.served.back());
  CHECK_FALSE(fleet.Waits(late));
}

TEST_CASE("slots are shared by weight") {
  Fleet fleet;
  fleet.Worker("w1", 8);
  SlotRequest heavy;
  heavy.weight = 3;
  std::vector<uint64_t> fill;
  for (int i = 0; i < 8; ++i) fill.push_back(fleet.Ask("other"));
  for (int i = 0; i < 20; ++i) fleet.Ask("light");
  uint64_t first_heavy = fleet.Ask("heavy", heavy);
  for (int i = 0; i < 19; ++i) fleet.Ask("heavy", heavy);
  for (uint64_t ticket : fill) fleet.Release(ticket);
  size_t heavy_slots = std::count_if(fleet.served.begin(), fleet.served.end(),
                                     [&](uint64_t ticket) { return ticket >= first_heavy; });
  CHECK(heavy_slots == 6);
}

TEST_CASE("a request that must wait does not stand before one that need not") {
  Fleet fleet;
  fleet.Worker("a100", 1, {{"gpu", "A100"}});
  fleet.Worker("h200", 1, {{"gpu", "H200"}});
  fleet.Ask("job", With({{"gpu", "H200"}}));
  uint64_t blocked = fleet.Ask("job", With({{"gpu", "H200"}}));
  uint64_t free = fleet.Ask("job", With({{"gpu", "A100"}}));
  CHECK(fleet.Waits(blocked));
  CHECK(fleet.Slot(free).worker == "a100");
}

TEST_CASE("work spreads over workers by their load") {
  Fleet fleet;
  fleet.Worker("big", 4);
  fleet.Worker("small", 2);
  std::map<std::string, int> count;
  for (int i = 0; i < 6; ++i) ++count[fleet.Slot(fleet.Ask("a")).worker];
  CHECK(count == std::map<std::string, int>{{"big", 4}, {"small", 2}});
}

TEST_CASE("a worker to avoid is passed over while another fits, even a busy one") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.Worker("w2", 1);
  SlotRequest avoid;
  avoid.avoid = {"w1"};
  uint64_t first = fleet.Ask("a", avoid);
  CHECK(fleet.Slot(first).worker == "w2");
  uint64_t second = fleet.Ask("a", avoid);
  CHECK(fleet.Waits(second));
  fleet.Release(first);
  CHECK(fleet.Slot(second).worker == "w2");
}

TEST_CASE("a request that avoids the free worker does not hold up the one behind it") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.Worker("w2", 1);
  SlotRequest avoid;
  avoid.avoid = {"w1"};
  fleet.Ask("a", avoid);
  uint64_t stuck = fleet.Ask("a", avoid);
  uint64_t behind = fleet.Ask("a");
  CHECK(fleet.Waits(stuck));
  CHECK(fleet.Slot(behind).worker == "w1");
}

TEST_CASE("a worker to avoid is taken when it is the only one that fits") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  SlotRequest avoid;
  avoid.avoid = {"w1"};
  CHECK(fleet.Slot(fleet.Ask("a", avoid)).worker == "w1");
}

TEST_CASE("what no registered worker can meet fails with the thing that is missing") {
  Fleet fleet;
  fleet.Worker("w1", 1, {{"gpu", "A100"}, {"zone", "a"}});
  fleet.Worker("w2", 1, {{"gpu", "H200"}, {"zone", "b"}});
  fleet.now = absl::Minutes(1);
  fleet.Worker("w1", 1, {{"gpu", "A100"}, {"zone", "a"}});
  fleet.Worker("w2", 1, {{"gpu", "H200"}, {"zone", "b"}});

  SlotRequest role;
  role.requirement.role = v1::ROLE_BENCHMARK;
  SlotRequest device;
  device.requirement.device = v1::DEVICE_KIND_CUDA;
  struct Case {
    SlotRequest request;
    std::string says;
  };
  const Case cases[] = {
      {role, "none of the 2 workers registered has benchmark slots"},
      {device, "has the device cuda (there: emulated)"},
      {With({{"gpu", "B200"}}), "has gpu=B200 (gpu is A100, H200 there)"},
      {With({{"rack", "7"}}), "has rack=7 (none has the label rack)"},
      {With({{"gpu", "H200"}, {"zone", "a"}}), "no single worker has all of the labels"},
  };
  for (const Case& c : cases) {
    absl::Status status = fleet.Failure(fleet.Ask("a", c.request));
    CHECK(absl::IsFailedPrecondition(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(c.says));
  }
}

TEST_CASE("right after the start a missing worker is waited for") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  uint64_t ticket = fleet.Ask("a", With({{"gpu", "H200"}}));
  CHECK(fleet.Waits(ticket));
  fleet.Pass(absl::Seconds(10));
  fleet.Worker("w2", 1, {{"gpu", "H200"}});
  CHECK(fleet.Slot(ticket).worker == "w2");
}

TEST_CASE("a wait for a worker that never registered ends as UNAVAILABLE") {
  Fleet fleet;
  fleet.now = absl::Hours(1);
  SlotRequest request;
  request.wait = absl::Seconds(5);
  uint64_t ticket = fleet.Ask("a", request);
  fleet.Pass(absl::Seconds(4));
  CHECK(fleet.Waits(ticket));
  fleet.Pass(absl::Seconds(1));
  CHECK(absl::IsUnavailable(fleet.Failure(ticket)));
  CHECK_THAT(std::string(fleet.Failure(ticket).message()),
             Catch::StartsWith("no worker registered yet"));
}

TEST_CASE("those who wait fail when the time of grace is over") {
  Fleet fleet;
  SlotRequest request = With({{"gpu", "H200"}});
  request.wait = absl::Minutes(5);
  uint64_t ticket = fleet.Ask("a", request);
  for (int i = 0; i < 7; ++i) {
    fleet.Worker("w1", 1);
    fleet.Pass(absl::Seconds(5));
  }
  CHECK(absl::IsFailedPrecondition(fleet.Failure(ticket)));
}

TEST_CASE("a wait on busy workers ends as DEADLINE_EXCEEDED with their number") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.Ask("a");
  SlotRequest request;
  request.wait = absl::Seconds(3);
  uint64_t ticket = fleet.Ask("a", request);
  fleet.Pass(absl::Seconds(3));
  CHECK(absl::IsDeadlineExceeded(fleet.Failure(ticket)));
  CHECK_THAT(std::string(fleet.Failure(ticket).message()), Catch::Contains("1 busy"));
}

TEST_CASE("a request without patience is answered at once") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.Ask("a");
  SlotRequest request;
  request.wait = absl::ZeroDuration();
  CHECK(absl::IsDeadlineExceeded(fleet.Failure(fleet.Ask("a", request))));
}

TEST_CASE("a withdrawn request gets CANCELLED and no slot") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  uint64_t holder = fleet.Ask("a");
  uint64_t ticket = fleet.Ask("a");
  CHECK(fleet.table.Cancel(ticket));
  CHECK(absl::IsCancelled(fleet.Failure(ticket)));
  CHECK_FALSE(fleet.table.Cancel(ticket));
  fleet.Release(holder);
  CHECK_FALSE(fleet.Waits(fleet.Ask("a")));
}

TEST_CASE("a silent worker is lost, gets no work, and comes back with all its slots") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.Worker("w2", 1);
  uint64_t first = fleet.Ask("a");
  REQUIRE(fleet.Slot(first).worker == "w1");
  fleet.now += absl::Seconds(14);
  fleet.Worker("w2", 1);
  fleet.Pass(absl::Seconds(1));
  CHECK(fleet.table.FindWorker("w1")->state() == v1::WORKER_STATE_LOST);
  CHECK(fleet.table.Figures(fleet.now).workers_lost == 1);
  fleet.Ask("a");
  uint64_t waits = fleet.Ask("a");
  CHECK(fleet.Waits(waits));
  CHECK_FALSE(fleet.table.Release(fleet.Slot(first).slot, fleet.now));
  fleet.Worker("w1", 1);
  CHECK(fleet.Slot(waits).worker == "w1");
}

TEST_CASE("a worker that a call could not reach gets no work until it syncs again") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.table.Suspect("w1");
  fleet.table.Suspect("ghost");
  uint64_t ticket = fleet.Ask("a");
  CHECK(fleet.Waits(ticket));
  fleet.Worker("w1", 1);
  CHECK(fleet.Slot(ticket).worker == "w1");
}

TEST_CASE("a class of workers that was just lost is waited for") {
  Fleet fleet;
  fleet.now = absl::Hours(1);
  fleet.Worker("other", 1);
  fleet.Worker("h200", 1, {{"gpu", "H200"}});
  fleet.now += absl::Seconds(16);
  fleet.Worker("other", 1);
  fleet.Pass(absl::ZeroDuration());
  SlotRequest request = With({{"gpu", "H200"}});
  request.wait = absl::Hours(1);
  uint64_t ticket = fleet.Ask("a", request);
  CHECK(fleet.Waits(ticket));
  fleet.now += absl::Seconds(30);
  fleet.Worker("other", 1);
  fleet.Pass(absl::ZeroDuration());
  CHECK(absl::IsFailedPrecondition(fleet.Failure(ticket)));
}

TEST_CASE("a lost worker is forgotten in the end") {
  Fleet fleet;
  fleet.Worker("w1", 1);
  fleet.Pass(absl::Minutes(5));
  CHECK(fleet.table.Workers().size() == 1);
  fleet.Pass(absl::Minutes(5));
  CHECK(fleet.table.Workers().empty());
}

TEST_CASE("a worker that drained and went is not lost") {
  Fleet fleet;
  v1::WorkerSyncRequest request = Fleet::Say("w1", 1);
  request.set_draining(true);
  fleet.table.Sync(request, absl::UnixEpoch(), fleet.now);
  fleet.Pass(absl::Seconds(15));
  CHECK(fleet.table.Workers().empty());
  CHECK(fleet.table.Figures(fleet.now).workers_lost == 0);
}

TEST_CASE("a new incarnation frees what the earlier process held") {
  Fleet fleet;
  fleet.Worker("w1", 1, {}, "first");
  uint64_t first = fleet.Ask("a");
  uint64_t second = fleet.Ask("a");
  fleet.Worker("w1", 1, {}, "first");
  CHECK(fleet.Waits(second));
  fleet.Worker("w1", 1, {}, "second");
  CHECK(fleet.Slot(second).worker == "w1");
  CHECK_FALSE(fleet.table.Release(fleet.Slot(first).slot, fleet.now));
}

TEST_CASE("a slot that is never given back is taken back after its time") {
  PlacementTable::Options options;
  options.verify_ttl = absl::Seconds(60);
  Fleet fleet(options);
  fleet.Worker("w1", 1);
  fleet.Ask("a");
  SlotRequest patient;
  patient.wait = absl::Hours(1);
  uint64_t next = fleet.Ask("a", patient);
  for (int i = 0; i < 5; ++i) {
    fleet.Pass(absl::Seconds(10));
    fleet.Worker("w1", 1);
  }
  CHECK(fleet.Waits(next));
  fleet.Pass(absl::Seconds(10));
  CHECK(fleet.Slot(next).worker == "w1");
  CHECK(fleet.table.Figures(fleet.now).slots_reclaimed == 1);
}

TEST_CASE("a holder's slots are freed together") {
  Fleet fleet;
  fleet.Worker("w1", 2);
  SlotRequest request;
  request.holder = "runner";
  fleet.Ask("a", request);
  fleet.Ask("b", request);
  uint64_t next = fleet.Ask("c");
  CHECK(fleet.table.ReleaseHolder("runner", fleet.now) == 2);
  CHECK_FALSE(fleet.Waits(next));
}

TEST_CASE("draining and sick workers keep their slots and get no new work") {
  Fleet fleet;
  fleet.Worker("w1", 2);
  fleet.Ask("a");
  REQUIRE(fleet.table.Drain("w1", true, fleet.now));
  uint64_t waits = fleet.Ask("a");
  CHECK(fleet.Waits(waits));
  CHECK(fleet.table.FindWorker("w1")->state() == v1::WORKER_STATE_DRAINING);
  CHECK(fleet.table.FindWorker("w1")->slots(0).used() == 1);
  SECTION("and the order can be taken back") {
    fleet.table.Drain("w1", false, fleet.now);
    CHECK_FALSE(fleet.Waits(waits));
  }
  SECTION("and the order reaches the worker with each sync until it restarts") {
    CHECK(fleet.table.Sync(Fleet::Say("w1", 2), absl::UnixEpoch(), fleet.now).drain);
    for (int i = 0; i < 2; ++i) {
      v1::WorkerSyncRequest restarted = Fleet::Say("w1", 2, {}, "second");
      CHECK_FALSE(fleet.table.Sync(restarted, absl::UnixEpoch(), fleet.now).drain);
    }
    CHECK_FALSE(fleet.Waits(waits));
  }
  SECTION("and may end once nothing of it is in use") {
    v1::WorkerSyncRequest busy = Fleet::Say("w1", 2);
    busy.set_busy(1);
    CHECK_FALSE(fleet.table.Sync(busy, absl::UnixEpoch(), fleet.now).end);
    // It has nothing to do, but whoever holds the slot may be about to call it.
    CHECK_FALSE(fleet.table.Sync(Fleet::Say("w1", 2), absl::UnixEpoch(), fleet.now).end);
    fleet.table.ReleaseHolder("a", fleet.now);
    CHECK_FALSE(fleet.table.Sync(busy, absl::UnixEpoch(), fleet.now).end);
    CHECK(fleet.table.Sync(Fleet::Say("w1", 2), absl::UnixEpoch(), fleet.now).end);
    fleet.table.Drain("w1", false, fleet.now);
    CHECK_FALSE(fleet.table.Sync(Fleet::Say("w1", 2), absl::UnixEpoch(), fleet.now).end);
  }
  SECTION("and a sick worker may become well") {
    fleet.table.Drain("w1", false, fleet.now);
    fleet.Collect();
    v1::WorkerSyncRequest sick = Fleet::Say("w1", 3);
    sick.set_health(v1::WORKER_HEALTH_SICK);
    fleet.table.Sync(sick, absl::UnixEpoch(), fleet.now);
    CHECK(fleet.table.FindWorker("w1")->state() == v1::WORKER_STATE_SICK);
    uint64_t next = fleet.Ask("a");
    CHECK(fleet.Waits(next));
    fleet.Worker("w1", 3);
    CHECK_FALSE(fleet.Waits(next));
  }
}

TEST_CASE("an order to drain of an earlier process holds for the same process of the worker") {
  PlacementTable::Options options;
  options.drained = {{"w1", "first"}, {"w2", "earlier"}};
  Fleet fleet(options);
  fleet.Worker("w1", 1);
  fleet.Worker("w2", 1);
  CHECK(fleet.table.Incarnation("w1") == "first");
  CHECK(fleet.table.Incarnation("none").empty());
  CHECK(fleet.table.FindWorker("w1")->state() == v1::WORKER_STATE_DRAINING);
  CHECK(fleet.table.FindWorker("w2")->state() == v1::WORKER_STATE_READY);
  CHECK(fleet.Slot(fleet.Ask("job")).worker == "w2");
  // Taken back, also when the worker is forgotten in between.
  REQUIRE(fleet.table.Drain("w1", false, fleet.now));
  fleet.Pass(absl::Hours(1));
  fleet.Worker("w1", 1);
  CHECK(fleet.table.FindWorker("w1")->state() == v1::WORKER_STATE_READY);
}

TEST_CASE("nobody drains an unknown worker") {
  Fleet fleet;
  CHECK_FALSE(fleet.table.Drain("ghost", true, fleet.now));
}

TEST_CASE("a worker that shrinks grants nothing until it is below its new size") {
  Fleet fleet;
  fleet.Worker("w1", 2);
  uint64_t first = fleet.Ask("a");
  uint64_t second = fleet.Ask("a");
  fleet.Worker("w1", 1);
  uint64_t third = fleet.Ask("a");
  fleet.Release(first);
  CHECK(fleet.Waits(third));
  fleet.Release(second);
  CHECK_FALSE(fleet.Waits(third));
}

TEST_CASE("figures count slots, waits and workers by role and state") {
  Fleet fleet;
  fleet.Worker("w1", 2);
  fleet.Worker("w2", 4, {}, "first", v1::ROLE_COMPILE);
  fleet.Ask("a");
  fleet.Ask("a");
  fleet.Ask("a");
  PlacementFigures figures = fleet.table.Figures(fleet.now);
  CHECK(figures.roles[v1::ROLE_VERIFY].total == 2);
  CHECK(figures.roles[v1::ROLE_VERIFY].used == 2);
  CHECK(figures.roles[v1::ROLE_VERIFY].waiting == 1);
  CHECK(figures.roles[v1::ROLE_VERIFY].wanted >= 1);
  CHECK(figures.roles[v1::ROLE_COMPILE].total == 4);
  CHECK(figures.roles[v1::ROLE_COMPILE].used == 0);
  CHECK(figures.workers[v1::WORKER_STATE_BUSY] == 1);
  CHECK(figures.workers[v1::WORKER_STATE_READY] == 1);
}

// Whatever happens, no worker has more slots out than it offers, every request is answered
// once, and nobody waits for what is free.
TEST_CASE("random events keep the table's promises") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::minstd_rand random(seed);
    auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
    Fleet fleet;
    std::map<std::string, int> incarnations;
    std::set<uint64_t> held;
    size_t seen = 0;
    for (int step = 0; step < 2000; ++step) {
      std::string worker = "w" + std::to_string(pick(4));
      switch (pick(7)) {
        case 0:
        case 1: {
          SlotRequest request = pick(2) == 0 ? SlotRequest{} : With({{"odd", "yes"}});
          request.wait = absl::Seconds(pick(30));
          if (pick(3) == 0) request.avoid = {worker};
          fleet.Ask("g" + std::to_string(pick(3)), request);
          break;
        }
        case 2:
        case 3:
          if (!held.empty()) {
            auto ticket = std::next(held.begin(), pick(held.size()));
            fleet.table.Release(fleet.Slot(*ticket).slot, fleet.now);
            held.erase(ticket);
          }
          break;
        case 4:
          if (pick(10) == 0) ++incarnations[worker];
          fleet.Worker(worker, 2,
                       worker == "w1" ? std::map<std::string, std::string>{{"odd", "yes"}}
                                      : std::map<std::string, std::string>{},
                       std::to_string(incarnations[worker]));
          break;
        case 5:
          fleet.Pass(absl::Seconds(pick(4)));
          break;
        case 6:
          fleet.table.Cancel(1 + pick(fleet.tickets + 1));
          break;
      }
      fleet.Collect();
      for (; seen < fleet.served.size(); ++seen) held.insert(fleet.served[seen]);
      bool any_free = false;
      for (const v1::Worker& state : fleet.table.Workers()) {
        for (const v1::WorkerSlots& slots : state.slots()) {
          REQUIRE(slots.used() <= slots.total());
          if (state.state() == v1::WORKER_STATE_READY && slots.used() < slots.total() &&
              state.id() == "w1") {
            any_free = true;
          }
        }
      }
      // w1 serves every requirement; only those who avoid it may wait beside it.
      if (any_free && fleet.table.Figures(fleet.now).roles[v1::ROLE_VERIFY].waiting > 0) {
        uint64_t probe = fleet.Ask("probe");
        CHECK_FALSE(fleet.Waits(probe));
        if (fleet.outcomes.at(probe).ok()) fleet.Release(probe);
        seen = fleet.served.size();
        // The release may have served somebody.
        for (uint64_t ticket : fleet.served) {
          if (ticket != probe) held.insert(ticket);
        }
      }
    }
    fleet.Pass(absl::Hours(1));
    for (uint64_t ticket = 1; ticket <= fleet.tickets; ++ticket) CHECK_FALSE(fleet.Waits(ticket));
  }
}

}  // namespace
}  // namespace kmosaic
