// One leased conversation: does what the state machine says, and records each step before
// the next.
#ifndef KMOSAIC_AGENT_RUNNER_CONVERSATION_H_
#define KMOSAIC_AGENT_RUNNER_CONVERSATION_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent_runner/agent/state_machine.h"
#include "agent_runner/coordinator_client.h"
#include "agent_runner/llm/endpoint_pool.h"
#include "agent_runner/metrics.h"
#include "agent_runner/shared_evaluations.h"
#include "common/base/clock.h"

namespace kmosaic {

// What all conversations of a process share. Everything outlives them.
struct ConversationServices {
  CoordinatorClient& coordinator;
  SharedEvaluations& evaluations;
  EndpointPool& endpoints;
  const GuidanceLibrary& guidance;
  const Clock& clock;
  RunnerMetrics& metrics;
  // This runner's name.
  std::string runner;
  // Between tries of a verb that the coordinator did not answer.
  absl::Duration backoff_base = absl::Milliseconds(200);
  absl::Duration backoff_cap = absl::Seconds(5);
};

class Conversation {
 public:
  // Later ones outrank earlier ones.
  enum class Order {
    kGoOn,
    // The process drains: no further call or evaluation begins; a call in flight may end
    // and is recorded; then the lease is handed back.
    kDrain,
    // The job was cancelled: what runs is called off, the item completed as cancelled.
    kCancel,
    // Another one holds the lease: everything is dropped without a word.
    kLost,
    // The process ends now: what is not recorded yet is given up.
    kEnd,
  };

  Conversation(const ConversationServices& services, v1::Lease lease,
               std::shared_ptr<const v1::JobSpec> job);

  // Holds the conversation until it is completed, released, handed back or dropped. Once,
  // on a thread of its own.
  void Run();

  // Thread-safe.
  void Give(Order order);
  // What its job and the other samples of its task have come to. Thread-safe.
  void Tell(const JobStanding& standing);

  const v1::LeaseToken& token() const { return lease_.token(); }

 private:
  enum class Next { kAgain, kOver };

  Next Do(const CallModel& call);
  Next Do(const Evaluate& evaluate);
  Next Do(const RecordResult& record);
  Next Do(const Stop& stop);
  Next OnLlmError(const LlmError& error);
  // The endpoint says that the request is too long: learns from it.
  Next OnOverflow(const CallModel& call, const LlmError& error);

  // True once the step is durable and part of steps_; false when the conversation is over.
  bool Record(v1::Step step);
  void Complete(const v1::ItemResult& result);
  void Release(v1::FailureClass failure, const std::string& reason, const std::string& worker,
               absl::Duration delay);
  void HandBack();
  void SendRelease(const v1::ReleaseRequest& request, const std::string& outcome);

  // Tries `verb` until it is answered or the conversation has to end; counts refusals of
  // a stale token.
  template <typename Verb>
  absl::Status Insist(const std::string& name, Verb verb);
  Order order() const;
  // NextAction as things stand now.
  absl::StatusOr<Action> Decide() const;
  void Ended(const std::string& outcome);

  const ConversationServices& services_;
  const v1::Lease lease_;
  const std::shared_ptr<const v1::JobSpec> job_;
  const ConversationSpec spec_;

  // Only used by Run's thread.
  Steps steps_;
  ContextHints hints_;
  std::shared_ptr<LlmClient> llm_;
  bool may_repeat_call_ = false;

  mutable std::mutex mutex_;
  Order order_ ABSL_GUARDED_BY(mutex_) = Order::kGoOn;
  JobStanding standing_ ABSL_GUARDED_BY(mutex_);
  CancelToken stop_work_;     // drain and above: evaluations, waits, new calls
  CancelToken stop_call_;     // cancel and above: the call in flight
  CancelToken stop_retries_;  // lost and above: further tries of a verb
  // End: the verb in flight. Not on a lost lease: the Sync that calls it lost may have
  // overtaken the answer to the Complete that ended it.
  CancelToken stop_verbs_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_CONVERSATION_H_
