#include "coordinator/placement/endpoint_shares.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

constexpr char kEndpoint[] = "http://llm/v1 model";

// A runner that keeps what it was told, with calls that begin and end as the test says.
struct Runner {
  std::string name;
  v1::EndpointUse use;
  uint64_t may_start = 0;
  absl::Duration until;

  explicit Runner(std::string id) : name(std::move(id)) { use.set_endpoint(kEndpoint); }

  v1::SyncEndpointsRequest Ask(absl::Duration now) {
    if (now >= until) use.set_slots(0);
    v1::SyncEndpointsRequest request;
    request.set_runner(name);
    *request.add_endpoints() = use;
    return request;
  }
  void Hear(const v1::SyncEndpointsResponse& answer, absl::Duration asked) {
    REQUIRE(answer.endpoints_size() == 1);
    use.set_slots(answer.endpoints(0).slots());
    may_start = answer.endpoints(0).may_start();
    until = asked + absl::Seconds(answer.ttl().seconds());
  }
  // Begins what may begin.
  void Begin(absl::Duration now) {
    if (now >= until) return;
    while (use.waiting() > 0 && use.in_flight() < use.slots() && use.started() < may_start) {
      use.set_waiting(use.waiting() - 1);
      use.set_in_flight(use.in_flight() + 1);
      use.set_started(use.started() + 1);
    }
  }
  void End(uint32_t calls, uint64_t tokens_each) {
    calls = std::min(calls, use.in_flight());
    use.set_in_flight(use.in_flight() - calls);
    use.set_tokens(use.tokens() + calls * tokens_each);
  }
};

class Fleet {
 public:
  explicit Fleet(size_t runners) {
    for (size_t i = 0; i < runners; ++i) all.emplace_back(absl::StrCat("runner-", i));
  }
  void Sync(Runner& runner) {
    auto answer = shares->Sync(runner.Ask(now), now);
    REQUIRE(answer.ok());
    runner.Hear(*answer, now);
  }
  void SyncAll() {
    for (Runner& runner : all) Sync(runner);
  }
  uint32_t Slots() const {
    uint32_t sum = 0;
    for (const Runner& runner : all) sum += runner.use.slots();
    return sum;
  }

  absl::Duration now = absl::Hours(1);
  std::optional<EndpointShares> shares{EndpointShares({}, now)};
  std::vector<Runner> all;
};

TEST_CASE("slots go to those who want them, evenly, and what one does not want to the others") {
  Fleet fleet(3);
  for (Runner& runner : fleet.all) {
    runner.use.set_max_concurrency(8);
    runner.use.set_waiting(64);
  }
  fleet.all[2].use.set_waiting(1);
  fleet.SyncAll();
  CHECK(fleet.all[0].use.slots() == 8);
  CHECK(fleet.all[1].use.slots() == 0);
  // What the first one has too much is free when it has said that it follows.
  fleet.SyncAll();
  fleet.SyncAll();
  CHECK(fleet.all[0].use.slots() == 4);
  CHECK(fleet.all[1].use.slots() == 3);
  CHECK(fleet.all[2].use.slots() == 1);
  fleet.all[1].use.set_waiting(0);
  for (int i = 0; i < 3; ++i) fleet.SyncAll();
  CHECK(fleet.all[0].use.slots() == 7);
}

TEST_CASE("the strictest limit counts, and no limit is none") {
  Fleet fleet(2);
  fleet.all[0].use.set_waiting(5);
  fleet.all[1].use.set_waiting(5);
  fleet.SyncAll();
  CHECK(fleet.all[0].use.slots() > 1000);
  CHECK(fleet.all[0].may_start > 1000);
  fleet.all[1].use.set_max_concurrency(2);
  for (int i = 0; i < 3; ++i) fleet.SyncAll();
  CHECK(fleet.all[0].use.slots() == 1);
  CHECK(fleet.all[1].use.slots() == 1);
}

TEST_CASE("more runners than slots take turns") {
  Fleet fleet(5);
  std::map<std::string, int> served;
  for (int second = 0; second < 200; ++second) {
    fleet.now += absl::Seconds(1);
    for (Runner& runner : fleet.all) {
      runner.use.set_max_concurrency(2);
      runner.End(1, 0);
      runner.use.set_waiting(3);
      fleet.Sync(runner);
      uint64_t before = runner.use.started();
      runner.Begin(fleet.now);
      served[runner.name] += static_cast<int>(runner.use.started() - before);
    }
    REQUIRE(fleet.Slots() <= 2);
  }
  REQUIRE(served.size() == 5);
  for (const auto& [name, calls] : served) {
    INFO(name << " " << calls);
    CHECK(calls >= 30);
  }
}

TEST_CASE("requests and tokens keep their rates over all runners") {
  Fleet fleet(4);
  uint64_t limit = GENERATE(6, 60, 600);
  bool tokens = GENERATE(false, true);
  constexpr uint64_t kTokens = 1000;
  constexpr int kMinutes = 20;
  auto started = [&] {
    uint64_t sum = 0;
    for (const Runner& runner : fleet.all) sum += runner.use.started();
    return sum;
  };
  std::deque<uint64_t> at_second;
  for (int second = 0; second < kMinutes * 60; ++second) {
    fleet.now += absl::Seconds(1);
    for (Runner& runner : fleet.all) {
      if (tokens) {
        runner.use.set_tokens_per_minute(limit * kTokens);
      } else {
        runner.use.set_requests_per_minute(limit);
      }
      // Calls of some seconds.
      if (second % 5 == 0) runner.End(1000, kTokens);
      runner.use.set_waiting(100);
      fleet.Sync(runner);
      runner.Begin(fleet.now);
    }
    at_second.push_back(started());
    if (at_second.size() > 61) at_second.pop_front();
    // Of tokens the first guess is four times too high.
    if (at_second.size() == 61 && second > 120) {
      uint64_t minute = at_second.back() - at_second.front();
      INFO(second << " s");
      REQUIRE(minute <= limit + std::max<uint64_t>(limit / 12, 1) + (tokens ? 1 + limit / 10 : 0));
    }
  }
  CHECK(started() >= limit * (kMinutes - 2));
  // Nobody starves, though all ask in the same order each time.
  for (const Runner& runner : fleet.all) CHECK(runner.use.started() * 12 >= started());
}

TEST_CASE("after a restart runners keep their slots and nobody gets more for one term") {
  Fleet fleet(2);
  for (Runner& runner : fleet.all) runner.use.set_max_concurrency(4);
  fleet.all[0].use.set_waiting(3);
  fleet.Sync(fleet.all[0]);
  fleet.all[0].Begin(fleet.now);
  fleet.now += absl::Seconds(5);
  fleet.shares.emplace(EndpointShares::Options(), fleet.now + absl::Seconds(15));
  fleet.all[1].use.set_waiting(9);
  fleet.Sync(fleet.all[1]);
  CHECK(fleet.all[1].use.slots() == 0);
  fleet.Sync(fleet.all[0]);
  CHECK(fleet.all[0].use.slots() >= 2);
  fleet.now += absl::Seconds(15);
  for (int i = 0; i < 3; ++i) fleet.SyncAll();
  // Three calls are still in flight.
  CHECK(fleet.all[1].use.slots() == 1);
  fleet.all[0].End(1, 0);
  for (int i = 0; i < 3; ++i) fleet.SyncAll();
  CHECK(fleet.all[1].use.slots() == 2);
}

TEST_CASE("a call without a name, or with an endpoint twice, is refused") {
  EndpointShares shares({}, absl::ZeroDuration());
  v1::SyncEndpointsRequest request;
  CHECK(shares.Sync(request, absl::ZeroDuration()).status().code() ==
        absl::StatusCode::kInvalidArgument);
  request.set_runner("runner");
  request.add_endpoints()->set_endpoint(kEndpoint);
  request.add_endpoints()->set_endpoint(kEndpoint);
  CHECK(shares.Sync(request, absl::ZeroDuration()).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("no fleet ever has more calls in flight than the limit") {
  uint64_t seed = GENERATE(range(1, 21));
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t bound) { return random() % bound; };
  constexpr uint32_t kLimit = 7;
  Fleet fleet(6);
  INFO("seed " << seed);
  for (int step = 0; step < 3000; ++step) {
    fleet.now += absl::Milliseconds(below(400));
    Runner& runner = fleet.all[below(fleet.all.size())];
    runner.use.set_max_concurrency(kLimit);
    switch (below(12)) {
      case 0:
        runner.use.set_waiting(static_cast<uint32_t>(below(20)));
        break;
      case 1:
      case 2:
        runner.End(static_cast<uint32_t>(1 + below(4)), 10);
        break;
      case 3: {
        // The answer is lost.
        REQUIRE(fleet.shares->Sync(runner.Ask(fleet.now), fleet.now).ok());
        break;
      }
      case 4:
        // Killed, and started again under the same name: its calls are gone with it.
        if (below(10) == 0) runner = Runner(runner.name);
        break;
      case 5:
        // A pause that is longer than its share lasts; its calls end in it.
        if (below(20) == 0) {
          runner.End(1000, 10);
          runner.use.set_slots(0);
          runner.until = absl::ZeroDuration();
        }
        break;
      case 6:
        if (below(20) == 0)
          fleet.shares.emplace(EndpointShares::Options(), fleet.now + absl::Seconds(15));
        break;
      default:
        fleet.Sync(runner);
        break;
    }
    uint32_t in_flight = 0;
    for (Runner& each : fleet.all) {
      // Calls are over by the time that a share runs out unheard.
      if (fleet.now >= each.until) each.End(1000, 10);
      each.Begin(fleet.now);
      in_flight += each.use.in_flight();
    }
    REQUIRE(in_flight <= kLimit);
  }
  uint64_t begun = 0;
  for (const Runner& each : fleet.all) begun += each.use.started();
  CHECK(begun > 20);
}

}  // namespace
}  // namespace kmosaic
