// Metrics of the queue; names and help stand here and in the .cc alone.
#ifndef KMOSAIC_COORDINATOR_QUEUE_QUEUE_METRICS_H_
#define KMOSAIC_COORDINATOR_QUEUE_QUEUE_METRICS_H_

#include "common/metrics/metrics.h"

namespace kmosaic {

// References live as long as the Metrics that they were made from.
struct QueueMetrics {
  explicit QueueMetrics(Metrics& metrics);

  prometheus::Family<prometheus::Gauge>& tasks;               // {state}
  prometheus::Family<prometheus::Gauge>& jobs;                // {state}
  prometheus::Family<prometheus::Counter>& task_transitions;  // {from,to}
  prometheus::Family<prometheus::Counter>& stale_tokens;      // {verb}
  prometheus::Counter& expired_leases;
  prometheus::Counter& steps;
  prometheus::Family<prometheus::Counter>& recorded_tokens;  // {kind}
  prometheus::Counter& commits;
  prometheus::Histogram& commit_seconds;
  prometheus::Histogram& commit_batch;
  prometheus::Gauge& store_write_state;
  prometheus::Gauge& store_free_bytes;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_QUEUE_METRICS_H_
