// Metrics of a GPU worker.
#ifndef KMOSAIC_GPU_WORKER_METRICS_H_
#define KMOSAIC_GPU_WORKER_METRICS_H_

#include <functional>
#include <string>

#include "common/metrics/metrics.h"

namespace kmosaic {

struct WorkerMetrics {
  explicit WorkerMetrics(Metrics* metrics)
      : evaluations(metrics->Counter("kmosaic_worker_evaluations_total",
                                     "Evaluations that ended, by last stage and verdict")),
        refused(metrics->Counter("kmosaic_worker_refused_total",
                                 "Requests that were not served, by gRPC status code")),
        compile_seconds(metrics->Histogram("kmosaic_worker_compile_seconds",
                                           "Wall seconds of compile stages, by cached")),
        verify_seconds(
            metrics->Histogram("kmosaic_worker_verify_seconds", "Wall seconds of verify stages")),
        role_seconds(metrics->Histogram(
            "kmosaic_worker_role_seconds",
            "Wall seconds of what was asked of sandboxed processes, by role and operation")),
        lock_seconds(metrics->Histogram("kmosaic_worker_device_lock_wait_seconds",
                                        "Wall seconds waited for the device, by mode")),
        busy(metrics->Gauge("kmosaic_worker_busy_slots", "Slots in use, by role")),
        healthy(metrics->Gauge("kmosaic_worker_healthy",
                               "1: takes work; 0: waits for its self-test to pass")),
        syncs(metrics->Counter("kmosaic_worker_syncs_total",
                               "Syncs with the coordinator, by result")) {}

  prometheus::Family<prometheus::Counter>& evaluations;
  prometheus::Family<prometheus::Counter>& refused;
  prometheus::Family<prometheus::Histogram>& compile_seconds;
  prometheus::Family<prometheus::Histogram>& verify_seconds;
  prometheus::Family<prometheus::Histogram>& role_seconds;
  prometheus::Family<prometheus::Histogram>& lock_seconds;
  prometheus::Family<prometheus::Gauge>& busy;
  prometheus::Family<prometheus::Gauge>& healthy;
  prometheus::Family<prometheus::Counter>& syncs;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_METRICS_H_
