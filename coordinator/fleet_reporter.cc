#include "coordinator/fleet_reporter.h"

#include <chrono>
#include <utility>

namespace kmosaic {
namespace {

constexpr std::chrono::seconds kInterval(1);

}  // namespace

void ReportFigures(const PlacementFigures& figures, const PlacementFigures& last,
                   PlacementMetrics& metrics) {
  // States without a worker are reported too, so that alerts can see a 0.
  for (auto [state, name] :
       {std::pair(v1::WORKER_STATE_READY, "ready"), std::pair(v1::WORKER_STATE_BUSY, "busy"),
        std::pair(v1::WORKER_STATE_DRAINING, "draining"), std::pair(v1::WORKER_STATE_SICK, "sick"),
        std::pair(v1::WORKER_STATE_LOST, "lost")}) {
    auto count = figures.workers.find(state);
    metrics.workers.Add({{"state", name}})
        .Set(count == figures.workers.end() ? 0 : static_cast<double>(count->second));
  }
  for (const auto& [role, of_role] : figures.roles) {
    std::string name = RoleName(role);
    double used = static_cast<double>(of_role.used);
    metrics.worker_slots.Add({{"role", name}, {"state", "used"}}).Set(used);
    metrics.worker_slots.Add({{"role", name}, {"state", "free"}})
        .Set(std::max(0.0, static_cast<double>(of_role.total) - used));
    metrics.waiting.Add({{"role", name}}).Set(static_cast<double>(of_role.waiting));
    metrics.wanted.Add({{"role", name}}).Set(static_cast<double>(of_role.wanted));
  }
  metrics.workers_lost.Increment(static_cast<double>(figures.workers_lost - last.workers_lost));
  metrics.slots_reclaimed.Increment(
      static_cast<double>(figures.slots_reclaimed - last.slots_reclaimed));
  metrics.unsatisfiable.Increment(static_cast<double>(figures.unsatisfiable - last.unsatisfiable));
}

FleetReporter::FleetReporter(const Placement& placement, PlacementMetrics& metrics)
    : placement_(placement), metrics_(metrics), thread_([this] { Run(); }) {}

FleetReporter::~FleetReporter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void FleetReporter::Run() {
  PlacementFigures last;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    PlacementFigures figures = placement_.Figures();
    ReportFigures(figures, last, metrics_);
    last = std::move(figures);
    stop_.wait_for(lock, kInterval,
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
  }
}

}  // namespace kmosaic
