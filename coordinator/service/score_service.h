// ScoreService: streams of candidates, placed on workers as a runner would.
#ifndef KMOSAIC_COORDINATOR_SERVICE_SCORE_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_SCORE_SERVICE_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/metrics.h"
#include "coordinator/placement/placement.h"
#include "coordinator/service/score_call.h"
#include "coordinator/service/worker_channels.h"
#include "kernelmosaic/v1/score.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it. Callback service: an open
// stream holds no thread.
class ScoreService : public v1::ScoreService::CallbackService {
 public:
  struct Options {
    // Workers that a candidate is tried on before it is answered with INFRASTRUCTURE.
    uint32_t max_tries = 3;
    // How long a candidate waits while no worker is registered at all.
    absl::Duration no_worker_patience = absl::Minutes(2);
    // A stream has at most this many candidates in hand for each slot of the fleet...
    uint32_t in_hand_per_slot = 2;
    // ...but this many in any case, and only while they are smaller than this together.
    uint32_t least_in_hand = 4;
    size_t max_in_hand_bytes = 64u << 20;
  };

  // All must outlive the service.
  ScoreService(const Options& options, Placement& placement, const Clock& clock,
               ScoreMetrics& metrics);

  grpc::ServerBidiReactor<v1::ScoreRequest, v1::ScoreResponse>* Score(
      grpc::CallbackServerContext* context) override;

 private:
  const Options options_;
  Placement& placement_;
  ScoreMetrics& metrics_;
  WorkerChannels channels_;
  const ScoreCallContext calls_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_SCORE_SERVICE_H_
