// Has a solution judged: slots from the coordinator, work on the workers.
#ifndef KMOSAIC_AGENT_RUNNER_EVALUATOR_H_
#define KMOSAIC_AGENT_RUNNER_EVALUATOR_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "agent_runner/coordinator_client.h"
#include "agent_runner/llm/cancel_token.h"
#include "agent_runner/metrics.h"
#include "common/base/clock.h"
#include "common/base/enum_names.h"
#include "kernelmosaic/v1/kernel.grpc.pb.h"

namespace kmosaic {

// No verdict could be had.
struct EvaluationFailure {
  v1::FailureClass failure = v1::FAILURE_CLASS_INFRASTRUCTURE;
  std::string reason;
  // Worker that failed last; empty where none was reached.
  std::string worker;
  // Worth trying again after this.
  absl::Duration delay;
};
struct EvaluationCancelled {};

using EvaluationOutcome =
    std::variant<v1::EvaluationReport, EvaluationFailure, EvaluationCancelled>;

struct EvaluationJob {
  std::string runner;
  v1::LeaseToken token;
  const v1::JobSpec* job = nullptr;
  const v1::TaskSpec* task = nullptr;
  const v1::Solution* solution = nullptr;
  bool benchmark = false;
};

// Thread-safe.
class Evaluator {
 public:
  struct Options {
    // One AcquireSlot; it is asked again until a slot comes.
    absl::Duration slot_wait = absl::Seconds(20);
    // How long one stage goes on trying after its first failure.
    absl::Duration patience = absl::Minutes(3);
    // Most INFRASTRUCTURE verdicts for one solution before it is given back.
    int infrastructure_verdicts = 4;
    absl::Duration backoff_base = absl::Milliseconds(500);
    absl::Duration backoff_cap = absl::Seconds(15);
    // Longest call to a worker where the slot does not say.
    absl::Duration call_timeout = absl::Minutes(15);
  };

  // All must outlive it.
  Evaluator(CoordinatorClient& coordinator, const Clock& clock, RunnerMetrics& metrics,
            Options options);

  // Compile, Verify and, where asked, Benchmark, each under a slot of its role, ending at
  // the first that does not pass. A failed machine is avoided, and the stage is tried on
  // another one; INFRASTRUCTURE is never in the report that is returned.
  EvaluationOutcome Evaluate(const EvaluationJob& job, CancelToken& cancel);

 private:
  EvaluationOutcome RunStage(v1::Role role, const EvaluationJob& job, CancelToken& cancel);
  absl::StatusOr<v1::EvaluationReport> CallWorker(v1::Role role, const v1::Slot& slot,
                                                  const EvaluationJob& job, CancelToken& cancel);
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& endpoint);

  CoordinatorClient& coordinator_;
  const Clock& clock_;
  RunnerMetrics& metrics_;
  const Options options_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_EVALUATOR_H_
