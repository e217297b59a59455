// Metrics of the coordinator, beside those of its queue (queue/queue_metrics.h). Labels are
// bounded: roles, states, verdicts, reasons; never a job, task or worker.
#ifndef KMOSAIC_COORDINATOR_METRICS_H_
#define KMOSAIC_COORDINATOR_METRICS_H_

#include <string>

#include "common/base/enum_names.h"
#include "common/metrics/metrics.h"

namespace kmosaic {

struct PlacementMetrics {
  explicit PlacementMetrics(Metrics& metrics)
      : workers(metrics.Gauge("kmosaic_workers", "Workers by state")),
        worker_slots(metrics.Gauge("kmosaic_worker_slots",
                                   "Slots of workers that are not lost, by role and state "
                                   "(used, free)")),
        waiting(metrics.Gauge("kmosaic_slot_requests_waiting",
                              "Requests that wait for a slot, by role")),
        wanted(metrics.Gauge("kmosaic_workers_wanted",
                             "Workers that the fleet should have, by role: slot requests per "
                             "second times service time, and what drains the waiting ones "
                             "within a minute, over slots per worker")),
        wait_seconds(metrics.Histogram("kmosaic_slot_wait_seconds",
                                       "How long granted requests waited for a slot, by role")),
        workers_lost(
            metrics
                .Counter("kmosaic_workers_lost_total", "Workers that went silent without a drain")
                .Add({})),
        slots_reclaimed(metrics
                            .Counter("kmosaic_slots_reclaimed_total",
                                     "Slots that were taken back since nobody released them")
                            .Add({})),
        unsatisfiable(metrics
                          .Counter("kmosaic_slot_requests_unsatisfiable_total",
                                   "Requests for a slot that no registered worker could serve")
                          .Add({})) {}

  prometheus::Family<prometheus::Gauge>& workers;
  prometheus::Family<prometheus::Gauge>& worker_slots;
  prometheus::Family<prometheus::Gauge>& waiting;
  prometheus::Family<prometheus::Gauge>& wanted;
  prometheus::Family<prometheus::Histogram>& wait_seconds;
  prometheus::Counter& workers_lost;
  prometheus::Counter& slots_reclaimed;
  prometheus::Counter& unsatisfiable;
};

struct ScoreMetrics {
  explicit ScoreMetrics(Metrics& metrics)
      : answers(metrics.Counter("kmosaic_score_answers_total",
                                "Candidates answered by ScoreService, by verdict")),
        retries(metrics.Counter("kmosaic_score_retries_total",
                                "Candidates that were tried again on another worker, by reason "
                                "(infrastructure, worker_unreachable)")),
        seconds(
            metrics
                .Histogram("kmosaic_score_seconds", "From the arrival of a candidate to its answer")
                .Add({}, SecondsBuckets())),
        streams(metrics.Gauge("kmosaic_score_streams", "Open score streams").Add({})) {}

  prometheus::Family<prometheus::Counter>& answers;
  prometheus::Family<prometheus::Counter>& retries;
  prometheus::Histogram& seconds;
  prometheus::Gauge& streams;
};

struct ExportMetrics {
  explicit ExportMetrics(Metrics& metrics)
      : rows(metrics.Counter("kmosaic_export_rows_total", "Dataset rows sent").Add({})) {}

  prometheus::Counter& rows;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_METRICS_H_
