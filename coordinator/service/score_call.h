// One candidate of a score stream: a slot, a call to a worker, another one when that worker
// fails.
#ifndef KMOSAIC_COORDINATOR_SERVICE_SCORE_CALL_H_
#define KMOSAIC_COORDINATOR_SERVICE_SCORE_CALL_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/metrics.h"
#include "coordinator/placement/placement.h"
#include "coordinator/service/worker_channels.h"
#include "kernelmosaic/v1/kernel.grpc.pb.h"
#include "kernelmosaic/v1/score.pb.h"

namespace kmosaic {

// What all calls of a service share; it outlives them.
struct ScoreCallContext {
  Placement& placement;
  WorkerChannels& channels;
  const Clock& clock;
  ScoreMetrics& metrics;
  // Workers that a candidate is tried on before it is answered with INFRASTRUCTURE.
  uint32_t max_tries;
  // How long a candidate waits while no worker at all could take it.
  absl::Duration no_worker_patience;
};

// Thread-safe. Keeps itself alive from Start to its answer.
class ScoreCall : public std::enable_shared_from_this<ScoreCall> {
 public:
  // Called once, from any thread, without a lock held.
  using Done = std::function<void(v1::EvaluationReport)>;

  // `stream` shares fairly with other streams and with jobs.
  ScoreCall(const ScoreCallContext& context, std::string stream, v1::ScoreRequest request,
            Done done);

  void Start() { Acquire(); }
  // Ends what runs as soon as possible; `done` is still called.
  void Cancel();

 private:
  void Acquire();
  void OnSlot(absl::StatusOr<v1::Slot> slot);
  void CallWorker();
  void OnReply(const grpc::Status& status);
  // Another worker, or the end.
  void TryAgain(const std::string& why, const char* reason);
  void Finish(v1::EvaluationReport report);
  void FinishWithInfrastructure(const std::string& why);
  bool Cancelled();

  const ScoreCallContext& context_;
  const std::string stream_;
  const v1::ScoreRequest request_;
  const Done done_;
  const absl::Duration started_;

  // Of the current try: used by one thread at a time, in the order of the callbacks.
  v1::Slot slot_;
  v1::EvaluateRequest wire_request_;
  v1::KernelResponse wire_response_;

  // Over all tries; like those above.
  std::set<std::string> avoid_;
  std::vector<std::string> failures_;
  // The last report of a worker that said INFRASTRUCTURE.
  v1::EvaluationReport last_report_;

  std::mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the request that waits; 0 when none does or its ticket is not known yet.
  uint64_t ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<grpc::ClientContext> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_SCORE_CALL_H_
