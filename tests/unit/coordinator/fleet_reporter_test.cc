#include "coordinator/fleet_reporter.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

TEST_CASE("gauges follow the figures and counters grow by what was added") {
  Metrics registry("test");
  PlacementMetrics metrics(registry);
  PlacementFigures first;
  first.workers[v1::WORKER_STATE_READY] = 2;
  first.roles[v1::ROLE_VERIFY] = {4, 3, 7, 5};
  first.workers_lost = 2;
  ReportFigures(first, {}, metrics);
  PlacementFigures second = first;
  second.workers.clear();
  second.workers_lost = 3;
  ReportFigures(second, first, metrics);

  std::string text = registry.Serialize();
  for (const char* line :
       {"kmosaic_workers{state=\"ready\"} 0\n",
        "kmosaic_worker_slots{role=\"verify\",state=\"used\"} 3\n",
        "kmosaic_worker_slots{role=\"verify\",state=\"free\"} 1\n",
        "kmosaic_slot_requests_waiting{role=\"verify\"} 7\n",
        "kmosaic_workers_wanted{role=\"verify\"} 5\n", "kmosaic_workers_lost_total 3\n"}) {
    CHECK_THAT(text, Catch::Contains(line));
  }
}

}  // namespace
}  // namespace kmosaic
