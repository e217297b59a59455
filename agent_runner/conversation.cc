#include "agent_runner/conversation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "agent_runner/agent/history.h"
#include "agent_runner/llm/token_estimate.h"
#include "agent_runner/proto_time.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

// Token estimates are raised in these steps when an endpoint says that a prompt is too long.
constexpr double kScaleStep = 1.25;
constexpr double kLargestScale = 8;

bool IsStale(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsNotFound(status) ||
         absl::IsAlreadyExists(status) || absl::IsOutOfRange(status);
}

bool IsFinal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status);
}

// Calls that broke off halfway may have been paid for: they use up an attempt, so that
// they are not bought without end. An endpoint that is away costs nothing.
v1::FailureClass ClassOf(LlmError::Kind kind) {
  switch (kind) {
    case LlmError::Kind::kUnavailable:
    case LlmError::Kind::kRateLimited:
      return v1::FAILURE_CLASS_INFRASTRUCTURE;
    case LlmError::Kind::kTimeout:
    case LlmError::Kind::kTruncatedStream:
    case LlmError::Kind::kBadReply:
      return v1::FAILURE_CLASS_RETRYABLE;
    default:
      return v1::FAILURE_CLASS_FINAL;
  }
}

LogFields ItemFields(const v1::LeaseToken& token) {
  return {
      {"job", token.item().job()}, {"item", token.item().number()}, {"attempt", token.attempt()}};
}

}  // namespace

Conversation::Conversation(const ConversationServices& services, v1::Lease lease,
                           std::shared_ptr<const v1::JobSpec> job)
    : services_(services),
      lease_(std::move(lease)),
      job_(std::move(job)),
      spec_{job_.get(), &lease_.task(), &lease_.views(), lease_.sample(), &services.guidance},
      steps_(lease_.steps().begin(), lease_.steps().end()) {}

void Conversation::Give(Order order) {
  std::lock_guard lock(mutex_);
  if (order <= order_) return;
  order_ = order;
  if (order >= Order::kDrain) stop_work_.Cancel();
  if (order >= Order::kCancel) stop_call_.Cancel();
  if (order >= Order::kLost) stop_retries_.Cancel();
  if (order >= Order::kEnd) stop_verbs_.Cancel();
}

void Conversation::Tell(const JobStanding& standing) {
  std::lock_guard lock(mutex_);
  standing_ = standing;
}

absl::StatusOr<Action> Conversation::Decide() const {
  JobStanding standing;
  {
    std::lock_guard lock(mutex_);
    standing = standing_;
  }
  return NextAction(spec_, steps_, services_.clock.Wall(), hints_, standing);
}

Conversation::Order Conversation::order() const {
  std::lock_guard lock(mutex_);
  return order_;
}

void Conversation::Run() {
  absl::StatusOr<std::shared_ptr<LlmClient>> llm = services_.endpoints.Get(*job_);
  if (!llm.ok()) {
    Release(v1::FAILURE_CLASS_FINAL, std::string(llm.status().message()), "", absl::ZeroDuration());
    return;
  }
  llm_ = *std::move(llm);
  may_repeat_call_ = lease_.token().attempt() > 1;
  Next next = Next::kAgain;
  while (next == Next::kAgain) {
    Order now = order();
    if (now == Order::kLost || now == Order::kEnd) {
      Ended(now == Order::kLost ? "lost" : "given_up");
      return;
    }
    if (now == Order::kDrain) {
      HandBack();
      return;
    }
    if (now == Order::kCancel) {
      absl::StatusOr<v1::ItemResult> result =
          MakeStop(steps_, v1::STOP_REASON_CANCELLED, "the job was cancelled");
      Complete(result.ok() ? *result : v1::ItemResult());
      return;
    }
    absl::StatusOr<Action> action = Decide();
    if (!action.ok()) {
      Release(v1::FAILURE_CLASS_FINAL, std::string(action.status().message()), "",
              absl::ZeroDuration());
      return;
    }
    next = std::visit([this](const auto& chosen) { return Do(chosen); }, *action);
  }
}

Conversation::Next Conversation::Do(const CallModel& call) {
  if (std::exchange(may_repeat_call_, false)) services_.metrics.calls_after_death.Increment();
  LlmRequest request;
  request.messages = call.messages;
  request.sampling = call.sampling;
  request.tools = call.tools;
  request.task = lease_.task().id();
  request.views = lease_.views();
  request.sample = lease_.sample();
  request.turn = call.turn;
  LlmResult result = llm_->Complete(request, stop_call_, stop_work_);
  if (const LlmError* error = std::get_if<LlmError>(&result)) {
    return error->kind == LlmError::Kind::kContextOverflow ? OnOverflow(call, *error)
                                                           : OnLlmError(*error);
  }

  v1::Step step;
  v1::ModelReply& reply = *step.mutable_reply();
  reply = std::move(std::get<v1::ModelReply>(result));
  reply.set_stage(call.stage);
  for (const v1::ChatMessage& message : call.added) *reply.add_added() = message;
  for (const std::string& id : call.guidance) reply.add_guidance(id);
  for (const std::string& id : call.guidance_withheld) reply.add_guidance_withheld(id);
  for (uint32_t turn : call.left_out) reply.add_left_out(turn);
  if (!Record(std::move(step))) return Next::kOver;
  services_.metrics.turns.Add({{"stage", StageName(call.stage)}}).Increment();
  return Next::kAgain;
}

Conversation::Next Conversation::OnLlmError(const LlmError& error) {
  switch (error.kind) {
    case LlmError::Kind::kCancelled:
      return Next::kAgain;  // the order says what now
    case LlmError::Kind::kRecordingEnded: {
      absl::StatusOr<v1::ItemResult> result =
          MakeStop(steps_, v1::STOP_REASON_RECORDING_ENDED, error.message);
      Complete(result.ok() ? *result : v1::ItemResult());
      return Next::kOver;
    }
    default:
      break;
  }
  LogFields fields = ItemFields(token());
  fields["error"] = error.message;
  fields["kind"] = LlmErrorName(error.kind);
  LogWarning("no reply from the endpoint, the conversation is put back", fields);
  Release(ClassOf(error.kind),
          absl::StrCat("endpoint '", job_->endpoint().name(), "': ", LlmErrorName(error.kind), ": ",
                       error.message),
          "", error.retry_after);
  return Next::kOver;
}

Conversation::Next Conversation::OnOverflow(const CallModel& call, const LlmError& error) {
  uint32_t window =
      hints_.window_tokens > 0 ? hints_.window_tokens : job_->budget().context_tokens();
  uint32_t named = error.window_tokens;
  if (window == 0 && named == 0) {
    named = static_cast<uint32_t>(EstimateTokens(call.messages)) + call.sampling.max_tokens();
  }
  if (named > 0 && (window == 0 || named < window)) hints_.window_tokens = named;
  // Estimates are raised until the request becomes another one: what was refused is not
  // sent again.
  for (; hints_.token_scale <= kLargestScale; hints_.token_scale *= kScaleStep) {
    absl::StatusOr<Action> action = Decide();
    if (!action.ok()) break;
    const CallModel* next = std::get_if<CallModel>(&*action);
    if (next == nullptr) return Next::kAgain;  // a stop, which the loop finds as well
    bool shorter = next->messages.size() < call.messages.size() ||
                   EstimateTokens(next->messages) < EstimateTokens(call.messages) ||
                   next->sampling.max_tokens() < call.sampling.max_tokens();
    if (shorter) return Next::kAgain;
  }
  absl::StatusOr<v1::ItemResult> result =
      MakeStop(steps_, v1::STOP_REASON_CONTEXT_EXHAUSTED, error.message);
  Complete(result.ok() ? *result : v1::ItemResult());
  return Next::kOver;
}

Conversation::Next Conversation::Do(const Evaluate& evaluate) {
  EvaluationJob job;
  job.runner = services_.runner;
  job.token = token();
  job.job = job_.get();
  job.task = &lease_.task();
  job.solution = &evaluate.solution;
  job.benchmark = evaluate.benchmark;
  auto [outcome, shared] = services_.evaluations.Evaluate(job, stop_work_);
  if (std::holds_alternative<EvaluationCancelled>(outcome)) return Next::kAgain;
  if (const auto* failure = std::get_if<EvaluationFailure>(&outcome)) {
    Release(failure->failure, failure->reason, failure->worker, failure->delay);
    return Next::kOver;
  }
  const auto& report = std::get<v1::EvaluationReport>(outcome);
  services_.metrics.verdicts
      .Add({{"stage", StageName(steps_.back().reply().stage())},
            {"verdict", VerdictName(report.verdict())}})
      .Increment();
  absl::StatusOr<v1::TurnResult> result = MakeResult(spec_, steps_, report);
  if (!result.ok()) {
    Release(v1::FAILURE_CLASS_FINAL, std::string(result.status().message()), "",
            absl::ZeroDuration());
    return Next::kOver;
  }
  result->set_shared(shared);
  return Do(RecordResult{*std::move(result)});
}

Conversation::Next Conversation::Do(const RecordResult& record) {
  v1::Step step;
  *step.mutable_result() = record.result;
  return Record(std::move(step)) ? Next::kAgain : Next::kOver;
}

Conversation::Next Conversation::Do(const Stop& stop) {
  Complete(stop.result);
  return Next::kOver;
}

template <typename Verb>
absl::Status Conversation::Insist(const std::string& name, Verb verb) {
  for (int attempt = 0;; ++attempt) {
    absl::Status status = verb();
    if (status.ok() || IsFinal(status)) return status;
    if (IsStale(status)) {
      services_.metrics.stale_tokens.Add({{"verb", name}}).Increment();
      LogFields fields = ItemFields(token());
      fields["verb"] = name;
      fields["error"] = std::string(status.message());
      LogInfo("the lease is not ours any more", fields);
      return status;
    }
    if (stop_retries_.WaitFor(Backoff(attempt, services_.backoff_base, services_.backoff_cap))) {
      return absl::CancelledError("the process ends or the lease is lost");
    }
  }
}

bool Conversation::Record(v1::Step step) {
  step.set_number(static_cast<uint32_t>(steps_.size()));
  *step.mutable_at() = ToProtoTimestamp(services_.clock.Wall());
  step.set_runner(services_.runner);
  step.set_attempt(token().attempt());
  // The same bytes with each try, so that a try whose answer was lost does no harm.
  v1::RecordStepRequest request;
  *request.mutable_token() = token();
  *request.mutable_step() = step;
  absl::Status status =
      Insist("record_step", [&] { return services_.coordinator.RecordStep(request, stop_verbs_); });
  if (status.ok()) {
    steps_.push_back(std::move(step));
    return true;
  }
  if (IsFinal(status)) {
    Release(v1::FAILURE_CLASS_FINAL,
            absl::StrCat("step ", step.number(), " was refused: ", std::string(status.message())),
            "", absl::ZeroDuration());
  } else {
    Ended(absl::IsCancelled(status) ? "given_up" : "lost");
  }
  return false;
}

void Conversation::Complete(const v1::ItemResult& result) {
  v1::CompleteRequest request;
  *request.mutable_token() = token();
  *request.mutable_result() = result;
  absl::Status status =
      Insist("complete", [&] { return services_.coordinator.Complete(request, stop_verbs_); });
  if (status.ok()) {
    LogFields fields = ItemFields(token());
    fields["stop_reason"] = StopReasonName(result.stop_reason());
    fields["verified"] = result.verified();
    fields["turns"] = result.turns();
    LogInfo("conversation completed", fields);
    Ended(StopReasonName(result.stop_reason()));
  } else if (IsFinal(status)) {
    Release(v1::FAILURE_CLASS_FINAL,
            absl::StrCat("the result was refused: ", std::string(status.message())), "",
            absl::ZeroDuration());
  } else {
    Ended(absl::IsCancelled(status) ? "given_up" : "lost");
  }
}

void Conversation::Release(v1::FailureClass failure, const std::string& reason,
                           const std::string& worker, absl::Duration delay) {
  v1::ReleaseRequest request;
  *request.mutable_token() = token();
  request.set_failure(failure);
  request.set_reason(reason);
  request.set_worker(worker);
  if (delay > absl::ZeroDuration()) *request.mutable_delay() = ToProtoDuration(delay);
  SendRelease(request, "released");
}

void Conversation::HandBack() {
  v1::ReleaseRequest request;
  *request.mutable_token() = token();
  request.set_reason("the runner drains");
  request.set_handed_back(true);
  SendRelease(request, "handed_back");
}

void Conversation::SendRelease(const v1::ReleaseRequest& request, const std::string& outcome) {
  absl::Status status =
      Insist("release", [&] { return services_.coordinator.Release(request, stop_verbs_); });
  LogFields fields = ItemFields(token());
  fields["reason"] = request.reason();
  if (status.ok()) {
    LogInfo("lease given back", fields);
    Ended(outcome);
    return;
  }
  fields["error"] = std::string(status.message());
  LogWarning("lease not given back, it will run out", fields);
  Ended(absl::IsCancelled(status) ? "given_up" : "lost");
}

void Conversation::Ended(const std::string& outcome) {
  services_.metrics.conversations_ended.Add({{"outcome", outcome}}).Increment();
}

}  // namespace kmosaic
