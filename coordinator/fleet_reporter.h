// Keeps the metrics of placement current.
#ifndef KMOSAIC_COORDINATOR_FLEET_REPORTER_H_
#define KMOSAIC_COORDINATOR_FLEET_REPORTER_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "coordinator/metrics.h"
#include "coordinator/placement/placement.h"

namespace kmosaic {

// Reports once a second while it lives.
class FleetReporter {
 public:
  // Both must outlive the reporter.
  FleetReporter(const Placement& placement, PlacementMetrics& metrics);
  ~FleetReporter();
  FleetReporter(const FleetReporter&) = delete;
  FleetReporter& operator=(const FleetReporter&) = delete;

 private:
  void Run();

  const Placement& placement_;
  PlacementMetrics& metrics_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Sets the gauges, and raises the counters by what was added since `last`.
void ReportFigures(const PlacementFigures& figures, const PlacementFigures& last,
                   PlacementMetrics& metrics);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_FLEET_REPORTER_H_
