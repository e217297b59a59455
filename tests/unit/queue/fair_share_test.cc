#include "coordinator/queue/fair_share.h"

#include <catch2/catch.hpp>
#include <map>

#include "coordinator/queue/backoff.h"
#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

std::map<uint64_t, int> Serve(FairShare& fair, int grants) {
  std::map<uint64_t, int> served;
  for (int i = 0; i < grants; ++i) {
    auto job = fair.Pick();
    REQUIRE(job.has_value());
    fair.Charge(*job);
    ++served[*job];
  }
  return served;
}

TEST_CASE("jobs of one band share by weight") {
  FairShare fair(50);
  fair.Update(1, true, 5, 1);
  fair.Update(2, true, 5, 2);
  fair.Update(3, true, 5, 4);
  std::map<uint64_t, int> served = Serve(fair, 7000);
  CHECK(served[1] == Approx(1000).epsilon(0.01));
  CHECK(served[2] == Approx(2000).epsilon(0.01));
  CHECK(served[3] == Approx(4000).epsilon(0.01));
}

TEST_CASE("weights and bands may change, and grants that did not come about are given back") {
  FairShare fair(50);
  CHECK(fair.HighestBand() == FairShare::Top{});
  fair.Update(1, true, 5, 1);
  fair.Update(2, true, 5, 3);
  CHECK(fair.HighestBand() == FairShare::Top{5, 4});
  Serve(fair, 400);
  fair.Update(2, true, 5, 1);
  CHECK(fair.HighestBand() == FairShare::Top{5, 2});
  std::map<uint64_t, int> served = Serve(fair, 400);
  CHECK(served[1] == Approx(200).margin(2));
  // Half of what the second one was given was none.
  for (int i = 0; i < 300; ++i) {
    uint64_t job = *fair.Pick();
    fair.Charge(job);
    ++served[job];
    if (job == 2 && served[2] % 2 == 0) fair.Refund(2, 1);
  }
  CHECK(served[2] - 200 == Approx(200).margin(3));
  fair.Update(2, true, 6, 1);
  CHECK(fair.HighestBand() == FairShare::Top{6, 1});
  CHECK(*fair.Pick() == 2);
  fair.Update(2, false, 6, 1);
  fair.Remove(1);
  CHECK(fair.HighestBand() == FairShare::Top{});
}

TEST_CASE("a job that comes late shares from then on and does not catch up") {
  FairShare fair(50);
  fair.Update(1, true, 5, 1);
  Serve(fair, 1000);
  fair.Update(2, true, 5, 1);
  std::map<uint64_t, int> served = Serve(fair, 100);
  CHECK(served[1] == Approx(50).margin(2));
  fair.Update(2, false, 5, 1);
  Serve(fair, 500);
  fair.Update(2, true, 5, 1);
  served = Serve(fair, 100);
  CHECK(served[2] == Approx(50).margin(2));
}

TEST_CASE("a higher band goes first, and a lower one does not starve") {
  FairShare fair(50);
  fair.Update(1, true, 9, 1);
  fair.Update(2, true, 0, 1000);
  std::map<uint64_t, int> served = Serve(fair, 5000);
  CHECK(served[2] >= 5000 / (9 * 50 + 1) - 1);
  CHECK(served[2] <= 5000 / (9 * 50));
  fair.Update(1, false, 9, 1);
  CHECK(fair.Pick() == uint64_t{2});
  fair.Update(2, false, 0, 1);
  CHECK_FALSE(fair.Pick().has_value());
}

TEST_CASE("of two starving jobs the one that waited longer is served") {
  FairShare fair(10);
  fair.Update(1, true, 5, 1);
  fair.Update(2, true, 4, 1);
  Serve(fair, 5);
  fair.Update(3, true, 4, 1000);
  for (int i = 0; i < 5; ++i) fair.Charge(1);
  CHECK(fair.Pick() == uint64_t{2});
}

TEST_CASE("shares of running jobs are 1:2:4 within 5 percent over leases and completions") {
  QueueFixture queue;
  std::map<std::string, uint32_t> weights;
  for (uint32_t weight : {1u, 2u, 4u}) {
    weights[queue.Submit({.tasks = 1000, .weight = weight}).id()] = weight;
  }
  std::map<std::string, double> granted;
  for (int round = 0; round < 100; ++round) {
    SyncResult result = queue.Sync("runner", 14);
    REQUIRE(result.granted.size() == 14);
    for (const GrantedItem& item : result.granted) {
      granted[item.token.item().job()] += 1;
      REQUIRE(queue.Complete(Completion(item.token)).ok());
    }
  }
  for (const auto& [job, weight] : weights)
    CHECK(granted[job] == Approx(200 * weight).epsilon(0.05));
}

TEST_CASE("a job at its own limit does not hold up the others") {
  QueueFixture queue;
  v1::Job capped = queue.Submit({.tasks = 10, .priority = 9, .max_concurrency = 2});
  v1::Job other = queue.Submit({.tasks = 10, .priority = 1});
  SyncResult result = queue.Sync("runner", 6);
  REQUIRE(result.granted.size() == 6);
  CHECK(queue.Counts(capped.id()).leased() == 2);
  CHECK(queue.Counts(other.id()).leased() == 4);
  REQUIRE(queue.Complete(Completion(result.granted[0].token)).ok());
  CHECK(queue.LeaseOne().item().job() == capped.id());
}

TEST_CASE("full jitter stays inside its bounds and uses them") {
  absl::Duration base = absl::Seconds(1);
  absl::Duration cap = absl::Minutes(5);
  CHECK(FullJitter(0, base, cap, 0) == absl::ZeroDuration());
  CHECK(FullJitter(0, base, cap, ~uint64_t{0}) <= base);
  CHECK(FullJitter(0, base, cap, ~uint64_t{0}) > base * 0.999);
  CHECK(FullJitter(3, base, cap, ~uint64_t{0}) > base * 7.9);
  CHECK(FullJitter(1000, base, cap, ~uint64_t{0}) <= cap);
  CHECK(FullJitter(1000, base, cap, uint64_t{1} << 63) == cap / 2);
}

}  // namespace
}  // namespace kmosaic
