#include "agent_runner/agent/state_machine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent_runner/agent/code_extraction.h"
#include "agent_runner/agent/context_window.h"
#include "agent_runner/agent/degenerate.h"
#include "agent_runner/agent/feedback.h"
#include "agent_runner/agent/payoff.h"
#include "agent_runner/agent/prompt.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/digest.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr uint32_t kResubmissions = 2;
constexpr uint32_t kDegenerateReplies = 2;
constexpr uint32_t kRepliesWithoutVersion = 3;
constexpr uint32_t kUnpaidOptimisations = 3;
constexpr uint64_t kFirstGuidanceTokens = 3000;
constexpr uint64_t kLaterGuidanceTokens = 1200;
// Guidance takes at most this share of the window.
constexpr uint64_t kGuidanceShare = 8;
// A call that leaves the model less than this is not worth its prompt.
constexpr uint64_t kLeastReplyTokens = 256;

bool IsBlank(const std::string& text) { return absl::StripAsciiWhitespace(text).empty(); }

// Whether the reply is kept out of what the model sees next: no endpoint takes an empty
// assistant message, and a model that reads its own loop goes on with it.
bool IsUnfit(const v1::ModelReply& reply, NoVersion kind) {
  return IsBlank(reply.content()) || kind == NoVersion::kDegenerate;
}

v1::ChatMessage UserMessage(std::string content) {
  v1::ChatMessage message;
  message.set_role(v1::CHAT_ROLE_USER);
  message.set_content(std::move(content));
  return message;
}

struct Version {
  NoVersion kind = NoVersion::kNone;
  std::string error;  // "kind: text" where there is none
  v1::Solution solution;
  std::string digest;
};

Version VersionOf(const ConversationSpec& spec, const v1::ModelReply& reply) {
  Version version;
  EntryPoint entry = EntryPointOf(*spec.task);
  Extraction extraction = ExtractCode(reply.content(), entry);
  std::string text;
  if (IsBlank(reply.content())) {
    bool cut = reply.finish_reason() == "length";
    version.kind = cut ? NoVersion::kTruncated : NoVersion::kEmpty;
    text = cut ? "the reply ended within its reasoning" : "the reply holds no text";
  } else if (extraction.outcome == ExtractionOutcome::kCode) {
    version.solution.set_contract(spec.task->contract());
    version.solution.set_source(std::move(extraction.code));
    version.digest = Sha256Hex(version.solution.source());
    return version;
  } else if (EndsInRepetition(reply.content())) {
    version.kind = NoVersion::kDegenerate;
    text = "the reply repeats itself without end";
  } else if (extraction.outcome == ExtractionOutcome::kTruncated) {
    version.kind = NoVersion::kTruncated;
    text = "a code block is never closed";
  } else if (extraction.outcome == ExtractionOutcome::kNoEntryPoint) {
    version.kind = NoVersion::kNoEntryPoint;
    text = absl::StrCat("none of ", extraction.blocks, " code blocks defines the entry point");
  } else if (extraction.outcome == ExtractionOutcome::kUnfenced) {
    version.kind = NoVersion::kUnfenced;
    text = "the entry point is defined outside of any fenced block";
  } else {
    version.kind = NoVersion::kNoCode;
    text = "the reply holds no fenced code block";
  }
  version.error = absl::StrCat(NoVersionName(version.kind), ": ", text);
  return version;
}

v1::TurnResult ResultOf(const History& history, const Version& version,
                        const v1::EvaluationReport& report) {
  v1::TurnResult result;
  *result.mutable_solution() = version.solution;
  result.set_solution_digest(version.digest);
  *result.mutable_report() = report;
  bool passed = report.verdict() == v1::VERDICT_PASSED;
  if (history.best == nullptr) {
    result.set_best(passed);
  } else {
    result.set_best(passed && IsBetter(report, history.best->report()));
    result.set_rolled_back(!result.best());
  }
  return result;
}

v1::ItemResult EndOf(const History& history, v1::StopReason reason, const std::string& text) {
  v1::ItemResult result;
  result.set_stop_reason(reason);
  result.set_reason(text);
  *result.mutable_usage() = history.usage;
  result.set_turns(history.turns);
  if (history.started) {
    result.set_seconds(absl::ToDoubleSeconds(history.last_at - *history.started));
  }
  if (history.best == nullptr) {
    if (history.last_judged != nullptr) {
      result.set_verdict(history.last_judged->report().verdict());
    }
    return result;
  }
  result.set_verified(true);
  result.set_verdict(v1::VERDICT_PASSED);
  result.set_best_step(history.best_step);
  Measure best = MeasureOf(history.best->report());
  Measure first = MeasureOf(history.first_verified->report());
  if (best.kind == Measure::Kind::kSpeedup) result.set_speedup(best.value);
  if (best.kind == Measure::Kind::kWork && first.kind == Measure::Kind::kWork) {
    result.set_work_ratio(best.value / first.value);
  }
  return result;
}

std::optional<Stop> StopWhenVerified(const v1::JobSpec& job, const History& history) {
  auto stop = [&](v1::StopReason reason, const std::string& text) {
    return Stop{EndOf(history, reason, text)};
  };
  const v1::EvaluationReport& best = history.best->report();
  Measure measure = MeasureOf(best);
  double target = job.target_speedup();
  if (target > 0 && measure.kind == Measure::Kind::kSpeedup && measure.value >= target) {
    return stop(v1::STOP_REASON_TARGET_REACHED,
                absl::StrFormat("speedup %.3g reaches the target %.3g", measure.value, target));
  }
  if (job.budget().optimise_turns() == 0) {
    return stop(v1::STOP_REASON_SOLVED, "verified; the job asks for no optimisation");
  }
  if (measure.kind == Measure::Kind::kNone) {
    return stop(v1::STOP_REASON_SOLVED, "verified; nothing was measured to optimise by");
  }
  if (IsAtFloor(best)) {
    return stop(v1::STOP_REASON_AT_FLOOR, "verified, and its time is at the hardware's floor");
  }
  if (history.optimise_turns >= job.budget().optimise_turns()) {
    return stop(v1::STOP_REASON_SOLVED, "verified; its optimisation turns are used up");
  }
  if (history.unpaid_in_a_row >= kUnpaidOptimisations) {
    return stop(v1::STOP_REASON_SOLVED, absl::StrCat("verified; ", kUnpaidOptimisations,
                                                     " optimisations in a row gave nothing"));
  }
  return std::nullopt;
}

std::optional<Stop> StopNow(const ConversationSpec& spec, const History& history, absl::Time now) {
  auto stop = [&](v1::StopReason reason, const std::string& text) {
    return Stop{EndOf(history, reason, text)};
  };
  if (history.last_result == nullptr) return std::nullopt;
  if (history.last_result->report().verdict() == v1::VERDICT_INVALID_TASK) {
    return stop(v1::STOP_REASON_INVALID_TASK, history.last_result->report().reason());
  }
  if (history.last_result->report().verdict() == v1::VERDICT_INFRASTRUCTURE) {
    return stop(v1::STOP_REASON_INFRASTRUCTURE, history.last_result->report().reason());
  }
  if (history.best != nullptr) {
    if (auto verified = StopWhenVerified(*spec.job, history)) return verified;
  }
  if (history.degenerate_in_a_row >= kDegenerateReplies) {
    return stop(v1::STOP_REASON_DEGENERATE_OUTPUT,
                absl::StrCat(kDegenerateReplies, " replies in a row were empty or repetitions"));
  }
  if (history.resubmissions_in_a_row >= kResubmissions) {
    return stop(v1::STOP_REASON_NO_PROGRESS, absl::StrCat("a version judged before was handed in ",
                                                          kResubmissions, " times in a row"));
  }
  if (history.no_version_in_a_row >= kRepliesWithoutVersion) {
    return stop(
        v1::STOP_REASON_NO_PROGRESS,
        absl::StrCat(kRepliesWithoutVersion, " replies in a row held no solution; the last: ",
                     history.last_result->extraction_error()));
  }
  const v1::Budget& budget = spec.job->budget();
  if (budget.turns() > 0 && history.turns >= budget.turns()) {
    return stop(v1::STOP_REASON_TURN_BUDGET, absl::StrCat(budget.turns(), " turns are used up"));
  }
  uint64_t tokens = history.usage.prompt_tokens() + history.usage.completion_tokens();
  if (budget.tokens() > 0 && tokens >= budget.tokens()) {
    return stop(v1::STOP_REASON_TOKEN_BUDGET, absl::StrCat(budget.tokens(), " tokens are used up"));
  }
  if (budget.cost_usd() > 0 && history.usage.cost_usd() >= budget.cost_usd()) {
    return stop(v1::STOP_REASON_COST_BUDGET,
                absl::StrFormat("%.4g USD are used up", budget.cost_usd()));
  }
  absl::Duration time =
      absl::Seconds(budget.time().seconds()) + absl::Nanoseconds(budget.time().nanos());
  if (time > absl::ZeroDuration() && std::max(now, history.last_at) - *history.started >= time) {
    return stop(v1::STOP_REASON_TIME_BUDGET, absl::StrCat(absl::FormatDuration(time), " are over"));
  }
  return std::nullopt;
}

std::string FeedbackText(const ConversationSpec& spec, const History& history) {
  const v1::TurnResult& last = *history.last_result;
  NoVersion none = NoVersionOf(last);
  if (none != NoVersion::kNone) {
    return NoVersionFeedback(none, EntryPointOf(*spec.task), history.last_reply->max_tokens());
  }
  if (history.repeats_turn > 0) return ResubmissionFeedback(history.repeats_turn, last.report());
  if (last.rolled_back()) return RollbackFeedback(last.report(), *history.best);
  if (last.best()) return OptimiseFeedback(last.report());
  return absl::StrCat(
      VerdictFeedback(last.report()),
      "\nFind the cause, say it in one sentence, and give the whole corrected file.\n");
}

std::vector<const GuidanceDocument*> PickGuidance(const ConversationSpec& spec,
                                                  const History& history, v1::Stage stage) {
  if (!spec.job->guidance() || spec.guidance == nullptr) return {};
  GuidanceQuery query;
  query.stage = stage;
  query.contract = spec.task->contract();
  query.family = spec.task->family();
  query.device = spec.job->evaluation().device();
  if (history.best != nullptr) query.regime = RegimeOf(history.best->report());
  query.present = history.guidance;
  query.token_budget = stage == v1::STAGE_IMPLEMENT ? kFirstGuidanceTokens : kLaterGuidanceTokens;
  if (uint64_t window = spec.job->budget().context_tokens(); window > 0) {
    query.token_budget = std::min(query.token_budget, window / kGuidanceShare);
  }
  const v1::TurnResult* last = history.last_result;
  bool failed = last != nullptr && NoVersionOf(*last) == NoVersion::kNone &&
                last->report().verdict() != v1::VERDICT_PASSED;
  if (failed) {
    query.error = ErrorText(last->report());
    // A broken optimisation needs what a broken first version needs.
    query.stage = v1::STAGE_REPAIR;
  }
  return spec.guidance->Pick(query);
}

// Documents of `ids` that still stand in `messages`.
std::vector<std::string> StillPresent(const ConversationSpec& spec,
                                      const std::vector<std::string>& ids,
                                      const std::vector<v1::ChatMessage>& messages) {
  std::vector<std::string> present;
  for (const std::string& id : ids) {
    const GuidanceDocument* document = spec.guidance == nullptr ? nullptr : spec.guidance->Find(id);
    bool found = document != nullptr &&
                 std::any_of(messages.begin(), messages.end(), [&](const auto& message) {
                   return message.content().find(document->text) != std::string::npos;
                 });
    if (found) present.push_back(id);
  }
  return present;
}

struct NextMessages {
  std::vector<v1::ChatMessage> earlier;
  v1::ChatMessage next;
  // `earlier` is not what the model saw last plus its reply.
  bool changed = false;
};

NextMessages Compose(const ConversationSpec& spec, const History& history,
                     const std::vector<const GuidanceDocument*>& documents) {
  NextMessages composed;
  if (history.turns == 0) {
    v1::ChatMessage system;
    system.set_role(v1::CHAT_ROLE_SYSTEM);
    system.set_content(SystemPrompt(*spec.job, *spec.task));
    composed.earlier.push_back(std::move(system));
    composed.next = UserMessage(TaskPrompt(*spec.task, *spec.views, documents));
    return composed;
  }
  std::string feedback = absl::StrCat(FeedbackText(spec, history), GuidanceSection(documents));
  composed.earlier = history.messages;
  if (IsUnfit(*history.last_reply, NoVersionOf(*history.last_result)) &&
      composed.earlier.size() >= 2) {
    composed.earlier.pop_back();
    std::string before = composed.earlier.back().content();
    composed.earlier.pop_back();
    composed.next = UserMessage(absl::StrCat(before, "\n", feedback));
    composed.changed = true;
    return composed;
  }
  composed.next = UserMessage(std::move(feedback));
  return composed;
}

absl::StatusOr<Action> Call(const ConversationSpec& spec, const History& history,
                            const ContextHints& hints) {
  const v1::JobSpec& job = *spec.job;
  CallModel call;
  call.turn = history.turns;
  call.stage = history.best != nullptr ? v1::STAGE_OPTIMISE
               : history.turns == 0    ? v1::STAGE_IMPLEMENT
                                       : v1::STAGE_REPAIR;
  call.sampling = job.sampling();
  if (call.sampling.has_seed()) call.sampling.set_seed(call.sampling.seed() + spec.sample);

  ContextLimits limits;
  limits.window_tokens = job.budget().context_tokens();
  if (hints.window_tokens > 0 &&
      (limits.window_tokens == 0 || hints.window_tokens < limits.window_tokens)) {
    limits.window_tokens = hints.window_tokens;
  }
  limits.max_tokens = job.sampling().max_tokens();
  limits.token_scale = hints.token_scale;

  std::vector<const GuidanceDocument*> documents = PickGuidance(spec, history, call.stage);
  NextMessages composed = Compose(spec, history, documents);
  std::string best = history.best_reply == nullptr ? "" : history.best_reply->content();
  std::optional<FittedContext> fitted = FitContext(composed.earlier, composed.next, best, limits);
  if (!fitted && !documents.empty()) {
    documents.clear();
    composed = Compose(spec, history, documents);
    fitted = FitContext(composed.earlier, composed.next, best, limits);
  }
  if (!fitted) {
    return Stop{EndOf(history, v1::STOP_REASON_CONTEXT_EXHAUSTED,
                      absl::StrCat("the task with its latest version does not fit into ",
                                   limits.window_tokens, " tokens"))};
  }

  if (uint64_t budget = job.budget().tokens(); budget > 0) {
    uint64_t used = history.usage.prompt_tokens() + history.usage.completion_tokens();
    uint64_t needed = used + EstimateTokens(fitted->messages) + kLeastReplyTokens;
    if (needed > budget) {
      return Stop{EndOf(history, v1::STOP_REASON_TOKEN_BUDGET,
                        absl::StrCat("the next call would exceed ", budget, " tokens"))};
    }
    uint64_t left = budget - needed + kLeastReplyTokens;
    if (fitted->max_tokens == 0 || left < fitted->max_tokens) {
      fitted->max_tokens = static_cast<uint32_t>(std::min<uint64_t>(left, UINT32_MAX));
    }
  }

  bool anew = fitted->trimmed || composed.changed || history.turns == 0;
  call.sampling.set_max_tokens(fitted->max_tokens);
  call.guidance = anew ? StillPresent(spec, history.guidance, fitted->messages) : history.guidance;
  for (const GuidanceDocument* document : documents) call.guidance.push_back(document->id());
  if (anew) {
    call.added = fitted->messages;
  } else {
    call.added.push_back(fitted->messages.back());
  }
  call.messages = std::move(fitted->messages);
  return call;
}

}  // namespace

absl::StatusOr<Action> NextAction(const ConversationSpec& spec, const Steps& steps, absl::Time now,
                                  const ContextHints& hints) {
  KMOSAIC_ASSIGN_OR_RETURN(History history, ReadHistory(steps));
  if (history.pending_reply == nullptr) {
    if (std::optional<Stop> stop = StopNow(spec, history, now)) return *std::move(stop);
    return Call(spec, history, hints);
  }
  Version version = VersionOf(spec, *history.pending_reply);
  if (version.kind != NoVersion::kNone) {
    RecordResult record;
    record.result.set_extraction_error(version.error);
    return record;
  }
  auto judged = history.judged.find(version.digest);
  if (judged != history.judged.end()) {
    RecordResult record;
    record.result = ResultOf(history, version, judged->second.result->report());
    return record;
  }
  Evaluate evaluate;
  evaluate.solution = std::move(version.solution);
  evaluate.digest = std::move(version.digest);
  evaluate.benchmark =
      spec.job->evaluation().benchmark() && spec.job->evaluation().device() == v1::DEVICE_KIND_CUDA;
  return evaluate;
}

absl::StatusOr<v1::TurnResult> MakeResult(const ConversationSpec& spec, const Steps& steps,
                                          const v1::EvaluationReport& report) {
  KMOSAIC_ASSIGN_OR_RETURN(History history, ReadHistory(steps));
  if (history.pending_reply == nullptr) {
    return absl::FailedPreconditionError("the conversation does not end with a reply");
  }
  Version version = VersionOf(spec, *history.pending_reply);
  if (version.kind != NoVersion::kNone) return absl::FailedPreconditionError(version.error);
  return ResultOf(history, version, report);
}

absl::StatusOr<v1::ItemResult> MakeStop(const Steps& steps, v1::StopReason reason,
                                        const std::string& text) {
  KMOSAIC_ASSIGN_OR_RETURN(History history, ReadHistory(steps));
  if (reason == v1::STOP_REASON_RECORDING_ENDED && history.best != nullptr) {
    return EndOf(history, v1::STOP_REASON_SOLVED, "verified; the recording has no further reply");
  }
  return EndOf(history, reason, text);
}

}  // namespace kmosaic
