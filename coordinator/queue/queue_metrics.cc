#include "coordinator/queue/queue_metrics.h"

namespace kmosaic {

QueueMetrics::QueueMetrics(Metrics& metrics)
    : tasks(metrics.Gauge("kmosaic_tasks", "Queue items by state")),
      jobs(metrics.Gauge("kmosaic_jobs", "Jobs by state")),
      task_transitions(metrics.Counter("kmosaic_task_transitions_total",
                                       "Queue items that moved from one state to another")),
      stale_tokens(metrics.Counter("kmosaic_stale_token_rejections_total",
                                   "Calls refused since their lease was not current, by verb")),
      expired_leases(metrics
                         .Counter("kmosaic_lease_expired_total",
                                  "Leases that ended since their holder was not heard of")
                         .Add({})),
      steps(metrics.Counter("kmosaic_steps_total", "Conversation steps recorded").Add({})),
      recorded_tokens(metrics.Counter("kmosaic_recorded_tokens_total",
                                      "LLM tokens of recorded replies, by kind")),
      commits(metrics.Counter("kmosaic_commits_total", "Synced batches written").Add({})),
      commit_seconds(metrics.Histogram("kmosaic_commit_seconds", "Time of one synced batch write")
                         .Add({}, FineSecondsBuckets())),
      commit_batch(metrics.Histogram("kmosaic_commit_batch_tasks", "Commands judged in one batch")
                       .Add({}, prometheus::Histogram::BucketBoundaries{1, 2, 4, 8, 16, 32, 64, 128,
                                                                        256, 512})),
      store_write_state(metrics
                            .Gauge("kmosaic_store_write_state",
                                   "0 writing, 1 no new jobs (disk short), 2 read-only")
                            .Add({})),
      store_free_bytes(
          metrics.Gauge("kmosaic_store_free_bytes", "Free bytes on the data volume").Add({})) {}

}  // namespace kmosaic
