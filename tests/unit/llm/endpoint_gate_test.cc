#include "agent_runner/llm/endpoint_gate.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>

#include "agent_runner/llm/endpoint_pool.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

// A gate with shared limits, and whoever wants to pass it.
struct SharedGate {
  FakeClock clock;
  std::atomic<int> waits = 0;
  EndpointGate gate{clock, EndpointLimit{8, 60, 1000}, [this] { ++waits; }};
  CancelToken cancel;

  // Whether a call may begin now; nobody waits.
  bool Enters() {
    CancelToken now;
    std::atomic<bool> entered = false;
    std::latch asked(1);
    int before = waits;
    std::thread caller([&] {
      absl::Duration wait;
      entered =
          gate.Enter(now, clock.Steady() + absl::Hours(1), &wait) == EndpointGate::Entry::kEntered;
      asked.count_down();
    });
    // It has entered, or it has begun to wait.
    while (!asked.try_wait() && waits == before) std::this_thread::yield();
    now.Cancel();
    caller.join();
    return entered;
  }
  EndpointGate::Share Good(uint32_t slots, uint64_t may_start) {
    return {slots, may_start, clock.Steady() + absl::Seconds(15)};
  }
};

}  // namespace

TEST_CASE_METHOD(SharedGate, "Shared limits let nobody pass without a share, and ask for one") {
  CHECK_FALSE(Enters());
  CHECK(waits == 1);
  gate.Hear(Good(1, 10));
  CHECK(Enters());
}

TEST_CASE_METHOD(SharedGate,
                 "No more are in flight than the share has slots, and counts are kept") {
  gate.Hear(Good(2, 10));
  CHECK(Enters());
  CHECK(Enters());
  CHECK_FALSE(Enters());
  EndpointGate::Use use = gate.use();
  CHECK(use.in_flight == 2);
  CHECK(use.started == 2);
  CHECK(use.slots == 2);
  CHECK(use.waiting == 0);
  gate.Leave(300);
  CHECK(gate.use().tokens == 300);
  CHECK(Enters());
  gate.Hear(Good(1, 10));  // fewer than are in flight: no further one
  CHECK_FALSE(Enters());
}

TEST_CASE_METHOD(SharedGate, "No more begin than the share lets, whether they have ended or not") {
  gate.Hear(Good(8, 2));
  CHECK(Enters());
  gate.Leave(0);
  CHECK(Enters());
  gate.Leave(0);
  CHECK_FALSE(Enters());
  gate.Hear(Good(8, 3));
  CHECK(Enters());
}

TEST_CASE_METHOD(SharedGate, "A share that has run out lets nobody pass") {
  gate.Hear(Good(8, 10));
  clock.Advance(absl::Seconds(15));
  CHECK_FALSE(Enters());
  CHECK(gate.use().slots == 0);
}

TEST_CASE_METHOD(SharedGate, "Who waits is let in by the next share") {
  std::thread caller([&] {
    absl::Duration wait;
    CHECK(gate.Enter(cancel, clock.Steady() + absl::Hours(1), &wait) ==
          EndpointGate::Entry::kEntered);
  });
  while (gate.use().waiting == 0) std::this_thread::yield();
  gate.Hear(Good(1, 1));
  caller.join();
  CHECK(gate.use().waiting == 0);
}

TEST_CASE_METHOD(SharedGate, "Without any share waiting is given up after the patience") {
  gate.Hear(Good(0, 0));
  clock.Advance(absl::Minutes(1));
  absl::Duration wait;
  CHECK(gate.Enter(cancel, clock.Steady(), &wait) == EndpointGate::Entry::kHeldBack);
  CHECK(wait > absl::ZeroDuration());
}

TEST_CASE("The strictest of two limits is the smaller one where there are both") {
  EndpointLimit limit = Strictest({8, 0, 100}, {4, 60, 0});
  CHECK(limit.max_concurrency == 4);
  CHECK(limit.requests_per_minute == 60);
  CHECK(limit.tokens_per_minute == 100);
  CHECK_FALSE(EndpointLimit().any());
}

TEST_CASE("A pool shares limits by address and model, the strictest of those that are held") {
  SystemClock clock;
  EndpointPool pool(clock, {}, {});
  pool.ShareLimits([] {});
  v1::JobSpec job;
  job.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_OPENAI);
  job.mutable_endpoint()->set_url("http://a/v1");
  job.mutable_endpoint()->set_model("m");
  auto unlimited = pool.Get(job);
  CHECK(pool.SharedGates().empty());
  job.mutable_endpoint()->set_max_concurrency(8);
  v1::JobSpec other = job;
  other.mutable_endpoint()->set_max_concurrency(4);
  other.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_ANTHROPIC);
  {
    auto first = pool.Get(job);
    auto second = pool.Get(other);
    auto gates = pool.SharedGates();
    REQUIRE(gates.size() == 1);
    CHECK(gates[0].endpoint == "http://a/v1 m");
    CHECK(gates[0].gate->use().limit.max_concurrency == 4);
  }
  CHECK(pool.SharedGates().empty());
  auto again = pool.Get(job);
  REQUIRE(pool.SharedGates().size() == 1);
  CHECK(pool.SharedGates()[0].gate->use().limit.max_concurrency == 8);
}
