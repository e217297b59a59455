#include "agent_runner/agent/state_machine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent_runner/agent/code_extraction.h"
#include "agent_runner/agent/context_window.h"
#include "agent_runner/agent/feedback.h"
#include "agent_runner/agent/normalised_source.h"
#include "agent_runner/agent/payoff.h"
#include "agent_runner/agent/prompt.h"
#include "agent_runner/agent/tools.h"
#include "agent_runner/agent/version.h"
#include "agent_runner/guidance/guidance_trial.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr uint64_t kFirstGuidanceTokens = 3000;
constexpr uint64_t kLaterGuidanceTokens = 1200;
// Guidance takes at most this share of the window.
constexpr uint64_t kGuidanceShare = 8;
// A call that leaves the model less than this is not worth its prompt.
constexpr uint64_t kLeastReplyTokens = 256;

bool UsesTools(const ConversationSpec& spec) {
  return spec.job->protocol() == v1::ANSWER_PROTOCOL_TOOLS;
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

// Guidance for one call.
struct ChosenGuidance {
  std::vector<const GuidanceDocument*> documents;
  // Ids of those that the trial withholds.
  std::vector<std::string> withheld;
};

bool IsWithheldFrom(const ConversationSpec& spec, const GuidanceDocument& document) {
  return spec.job->guidance_trial() &&
         IsWithheld(document.name, spec.task->id(), *spec.views, spec.sample);
}

ChosenGuidance ChooseGuidance(const ConversationSpec& spec, const History& history,
                              v1::Stage stage) {
  if (!spec.job->guidance() || spec.guidance == nullptr) return {};
  GuidanceQuery query;
  query.stage = stage;
  query.contract = spec.task->contract();
  query.family = spec.task->family();
  query.device = spec.job->evaluation().device();
  if (history.best != nullptr) query.regime = RegimeOf(history.best->report());
  query.present = history.guidance;
  query.present.insert(query.present.end(), history.guidance_withheld.begin(),
                       history.guidance_withheld.end());
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
  ChosenGuidance chosen;
  for (const GuidanceDocument* document : spec.guidance->Pick(query)) {
    if (IsWithheldFrom(spec, *document)) {
      chosen.withheld.push_back(document->id());
    } else {
      chosen.documents.push_back(document);
    }
  }
  return chosen;
}

// Names of the documents that the model may ask for.
std::vector<std::string> ReadableGuidance(const ConversationSpec& spec) {
  std::vector<std::string> names;
  if (!spec.job->guidance() || spec.guidance == nullptr) return names;
  for (const GuidanceDocument* document :
       spec.guidance->Fitting(spec.task->contract(), spec.job->evaluation().device())) {
    if (!IsWithheldFrom(spec, *document)) names.push_back(document->name);
  }
  return names;
}

// The document that the last reply asked for; null where there is none of that name.
const GuidanceDocument* AskedGuidance(const ConversationSpec& spec, const History& history) {
  Version version = VersionOf(*spec.job, *spec.task, *history.last_reply);
  std::vector<std::string> names = ReadableGuidance(spec);
  bool readable = std::find(names.begin(), names.end(), version.document) != names.end();
  return readable ? spec.guidance->FindByName(version.document) : nullptr;
}

std::string FeedbackText(const ConversationSpec& spec, const History& history) {
  const v1::TurnResult& last = *history.last_result;
  NoVersion none = NoVersionOf(last);
  if (none == NoVersion::kReadGuidance) {
    if (const GuidanceDocument* document = AskedGuidance(spec, history)) return document->text;
    return absl::StrCat("There is no such document. There are: ",
                        absl::StrJoin(ReadableGuidance(spec), ", "), ".\n");
  }
  if (none != NoVersion::kNone) {
    return NoVersionFeedback(none, last.extraction_error(),
                             {EntryPointOf(*spec.task), UsesTools(spec)},
                             history.last_reply->max_tokens());
  }
  if (history.repeats_turn > 0) return ResubmissionFeedback(history.repeats_turn, last.report());
  if (last.rolled_back()) return RollbackFeedback(last.report(), *history.best);
  if (last.best()) return OptimiseFeedback(last.report());
  return absl::StrCat(
      VerdictFeedback(last.report()),
      "\nFind the cause, say it in one sentence, and give the whole corrected file.\n");
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
  // Numbers of the replies among `earlier`, in their order.
  std::vector<uint32_t> replies;
  v1::ChatMessage next;
  // `earlier` is not what the model saw last plus its reply.
  bool changed = false;
};

v1::ChatMessage SystemMessage(const ConversationSpec& spec) {
  v1::ChatMessage system;
  system.set_role(v1::CHAT_ROLE_SYSTEM);
  system.set_content(SystemPrompt(*spec.job, *spec.task));
  return system;
}

NextMessages Compose(const ConversationSpec& spec, const History& history,
                     const std::vector<const GuidanceDocument*>& documents) {
  NextMessages composed;
  if (history.turns == 0) {
    composed.earlier.push_back(SystemMessage(spec));
    composed.next = AnswerTo({}, TaskPrompt(*spec.task, *spec.views, documents));
    return composed;
  }
  std::string feedback = absl::StrCat(FeedbackText(spec, history), GuidanceSection(documents));
  composed.earlier = history.messages;
  composed.replies = history.replies_in_context;
  if (IsUnfit(*history.last_reply, NoVersionOf(*history.last_result)) &&
      composed.earlier.size() >= 2) {
    composed.earlier.pop_back();
    composed.replies.pop_back();
    composed.next = composed.earlier.back();
    composed.earlier.pop_back();
    absl::StrAppend(composed.next.mutable_content(), "\n", feedback);
    composed.changed = true;
    return composed;
  }
  composed.next = AnswerTo(composed.earlier.back(), std::move(feedback));
  return composed;
}

ContextLimits LimitsOf(const v1::JobSpec& job, const ContextHints& hints) {
  ContextLimits limits;
  limits.window_tokens = job.budget().context_tokens();
  if (hints.window_tokens > 0 &&
      (limits.window_tokens == 0 || hints.window_tokens < limits.window_tokens)) {
    limits.window_tokens = hints.window_tokens;
  }
  limits.max_tokens = job.sampling().max_tokens();
  limits.token_scale = hints.token_scale;
  return limits;
}

// Position of the best version's reply among `replies`.
std::optional<size_t> PlaceOfBest(const History& history, const std::vector<uint32_t>& replies) {
  if (history.best_reply == nullptr) return std::nullopt;
  auto found = std::find(replies.begin(), replies.end(), history.best_turn);
  if (found == replies.end()) return std::nullopt;
  return static_cast<size_t>(found - replies.begin());
}

std::optional<FittedContext> Fit(const NextMessages& composed, const History& history,
                                 const ContextLimits& limits) {
  std::optional<FittedContext> fitted =
      FitContext(composed.earlier, composed.next, PlaceOfBest(history, composed.replies), limits);
  if (!fitted || fitted->left_out.empty()) return fitted;
  // What answers the latest reply may now stand behind another one.
  std::vector<v1::ChatMessage>& messages = fitted->messages;
  messages.back() = messages.size() > 2
                        ? AnswerTo(messages[messages.size() - 2], messages.back().content())
                        : AnswerTo({}, messages.back().content());
  return fitted;
}

// Numbers of earlier replies that do not stand in the context any more.
std::vector<uint32_t> LeftOut(const NextMessages& composed, const FittedContext& fitted,
                              uint32_t turns) {
  std::vector<bool> kept(turns, false);
  for (size_t i = 0; i < composed.replies.size(); ++i) {
    kept[composed.replies[i]] =
        !std::binary_search(fitted.left_out.begin(), fitted.left_out.end(), i);
  }
  std::vector<uint32_t> left_out;
  for (uint32_t turn = 0; turn < turns; ++turn) {
    if (!kept[turn]) left_out.push_back(turn);
  }
  return left_out;
}

v1::Sampling SamplingOf(const ConversationSpec& spec) {
  v1::Sampling sampling = spec.job->sampling();
  if (sampling.has_seed()) sampling.set_seed(sampling.seed() + spec.sample);
  if (int count = sampling.temperatures_size(); count > 0) {
    sampling.set_temperature(
        sampling.temperatures(static_cast<int>(spec.sample % static_cast<uint32_t>(count))));
    sampling.clear_temperatures();
  }
  return sampling;
}

// Lowers the reply's cap to what the token budget leaves; false when that is too little.
bool KeepTokenBudget(const v1::JobSpec& job, const History& history, FittedContext* fitted) {
  uint64_t budget = job.budget().tokens();
  if (budget == 0) return true;
  uint64_t used = history.usage.prompt_tokens() + history.usage.completion_tokens() +
                  EstimateTokens(fitted->messages);
  if (used + kLeastReplyTokens > budget) return false;
  uint64_t left = budget - used;
  if (fitted->max_tokens == 0 || left < fitted->max_tokens) {
    fitted->max_tokens = static_cast<uint32_t>(std::min<uint64_t>(left, UINT32_MAX));
  }
  return true;
}

Action Call(const ConversationSpec& spec, const History& history, const ContextHints& hints) {
  const v1::JobSpec& job = *spec.job;
  CallModel call;
  call.turn = history.turns;
  call.stage = history.best != nullptr ? v1::STAGE_OPTIMISE
               : history.turns == 0    ? v1::STAGE_IMPLEMENT
                                       : v1::STAGE_REPAIR;
  call.sampling = SamplingOf(spec);
  if (UsesTools(spec)) call.tools = Tools(ReadableGuidance(spec));

  const ContextLimits limits = LimitsOf(job, hints);
  ChosenGuidance guidance = ChooseGuidance(spec, history, call.stage);
  NextMessages composed = Compose(spec, history, guidance.documents);
  std::optional<FittedContext> fitted = Fit(composed, history, limits);
  if (!fitted && !guidance.documents.empty()) {
    guidance.documents.clear();
    composed = Compose(spec, history, {});
    fitted = Fit(composed, history, limits);
  }
  if (!fitted) {
    return Stop{EndOf(history, v1::STOP_REASON_CONTEXT_EXHAUSTED,
                      absl::StrCat("the task with its latest version does not fit into ",
                                   limits.window_tokens, " tokens"))};
  }
  if (!KeepTokenBudget(job, history, &*fitted)) {
    return Stop{
        EndOf(history, v1::STOP_REASON_TOKEN_BUDGET,
              absl::StrCat("the next call would exceed ", job.budget().tokens(), " tokens"))};
  }

  call.sampling.set_max_tokens(fitted->max_tokens);
  call.left_out = LeftOut(composed, *fitted, history.turns);
  bool anew = !fitted->left_out.empty() || composed.changed || history.turns == 0;
  call.guidance = anew ? StillPresent(spec, history.guidance, fitted->messages) : history.guidance;
  for (const GuidanceDocument* document : guidance.documents) {
    call.guidance.push_back(document->id());
  }
  if (history.last_result != nullptr &&
      NoVersionOf(*history.last_result) == NoVersion::kReadGuidance) {
    const GuidanceDocument* asked = AskedGuidance(spec, history);
    if (asked != nullptr &&
        std::find(call.guidance.begin(), call.guidance.end(), asked->id()) == call.guidance.end()) {
      call.guidance.push_back(asked->id());
    }
  }
  call.guidance_withheld = std::move(guidance.withheld);
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
                                  const ContextHints& hints, const JobStanding& standing) {
  KMOSAIC_ASSIGN_OR_RETURN(History history, ReadHistory(steps));
  if (history.pending_reply == nullptr) {
    if (auto end = EndNow(*spec.job, history, standing, now)) return Stop{*std::move(end)};
    return Call(spec, history, hints);
  }
  Version version = VersionOf(*spec.job, *spec.task, *history.pending_reply);
  if (version.kind != NoVersion::kNone) {
    RecordResult record;
    record.result.set_extraction_error(version.error);
    return record;
  }
  auto judged = history.judged.find(NormalisedDigest(version.solution));
  if (judged != history.judged.end()) {
    RecordResult record;
    record.result = ResultOf(history, version, judged->second.result->report());
    return record;
  }
  Evaluate evaluate;
  evaluate.solution = std::move(version.solution);
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
  Version version = VersionOf(*spec.job, *spec.task, *history.pending_reply);
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
