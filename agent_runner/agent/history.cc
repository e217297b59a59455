#include "agent_runner/agent/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent_runner/agent/normalised_source.h"
#include "agent_runner/agent/tools.h"
#include "common/base/chat.h"

namespace kmosaic {
namespace {

constexpr std::pair<NoVersion, const char*> kNames[] = {
    {NoVersion::kTruncated, "truncated"},
    {NoVersion::kNoEntryPoint, "no_entry_point"},
    {NoVersion::kUnfenced, "unfenced"},
    {NoVersion::kNoCode, "no_code"},
    {NoVersion::kEmpty, "empty"},
    {NoVersion::kDegenerate, "degenerate"},
    {NoVersion::kBadToolCall, "bad_tool_call"},
    {NoVersion::kReadGuidance, "read_guidance"},
};

absl::Time TimeOf(const v1::Step& step) {
  return absl::FromUnixSeconds(step.at().seconds()) + absl::Nanoseconds(step.at().nanos());
}

void AddReply(const v1::ModelReply& reply, absl::Time at, History* history) {
  if (!history->started) history->started = at - absl::Seconds(reply.seconds());
  if (StartsContext(reply)) {
    history->messages.clear();
    history->replies_in_context.clear();
    const auto& out = reply.left_out();
    for (uint32_t turn = 0; turn < history->turns; ++turn) {
      if (std::find(out.begin(), out.end(), turn) == out.end()) {
        history->replies_in_context.push_back(turn);
      }
    }
  }
  history->messages.insert(history->messages.end(), reply.added().begin(), reply.added().end());
  history->messages.push_back(AssistantMessage(reply, history->turns));
  history->replies_in_context.push_back(history->turns);
  history->guidance.assign(reply.guidance().begin(), reply.guidance().end());
  history->guidance_withheld.insert(history->guidance_withheld.end(),
                                    reply.guidance_withheld().begin(),
                                    reply.guidance_withheld().end());

  v1::Usage& sum = history->usage;
  const v1::Usage& usage = reply.usage();
  sum.set_requests(sum.requests() + usage.requests());
  sum.set_prompt_tokens(sum.prompt_tokens() + usage.prompt_tokens());
  sum.set_completion_tokens(sum.completion_tokens() + usage.completion_tokens());
  sum.set_reasoning_tokens(sum.reasoning_tokens() + usage.reasoning_tokens());
  sum.set_cost_usd(sum.cost_usd() + usage.cost_usd());
  sum.set_cached_prompt_tokens(sum.cached_prompt_tokens() + usage.cached_prompt_tokens());
  sum.set_estimated(sum.estimated() || usage.estimated());

  ++history->turns;
  if (reply.stage() == v1::STAGE_OPTIMISE) ++history->optimise_turns;
  history->pending_reply = &reply;
  history->last_result = nullptr;
}

void AddResult(const v1::TurnResult& result, uint32_t number, History* history) {
  const v1::ModelReply* reply = std::exchange(history->pending_reply, nullptr);
  history->last_result = &result;
  history->last_reply = reply;
  ToolRequest request = ReadToolCalls(*reply);
  history->last_word =
      request.kind == ToolRequest::Kind::kSubmit && request.source == result.solution().source();
  history->repeats_turn = 0;

  NoVersion none = NoVersionOf(result);
  if (none == NoVersion::kReadGuidance) {
    ++history->reads_in_a_row;
    return;
  }
  history->reads_in_a_row = 0;
  bool degenerate = none == NoVersion::kEmpty || none == NoVersion::kDegenerate;
  history->no_version_in_a_row = none == NoVersion::kNone ? 0 : history->no_version_in_a_row + 1;
  history->degenerate_in_a_row = degenerate ? history->degenerate_in_a_row + 1 : 0;

  bool repeated = false;
  if (none == NoVersion::kNone) {
    auto [entry, is_new] = history->judged.try_emplace(NormalisedDigest(result.solution()),
                                                       History::Judged{history->turns, &result});
    repeated = !is_new;
    if (repeated) history->repeats_turn = entry->second.turn;
    history->last_judged = &result;
  }
  history->resubmissions_in_a_row = repeated ? history->resubmissions_in_a_row + 1 : 0;

  bool verified = none == NoVersion::kNone && result.report().verdict() == v1::VERDICT_PASSED;
  if (verified && history->first_verified == nullptr) history->first_verified = &result;
  if (result.best()) {
    history->best = &result;
    history->best_step = number;
    history->best_reply = reply;
    history->best_turn = history->turns - 1;
    history->unpaid_in_a_row = 0;
  } else if (reply->stage() == v1::STAGE_OPTIMISE) {
    ++history->unpaid_in_a_row;
  }
}

}  // namespace

std::string NoVersionName(NoVersion kind) {
  for (const auto& [value, name] : kNames) {
    if (value == kind) return name;
  }
  return "";
}

NoVersion NoVersionOf(const v1::TurnResult& result) {
  for (const auto& [value, name] : kNames) {
    if (absl::StartsWith(result.extraction_error(), absl::StrCat(name, ":"))) return value;
  }
  return result.extraction_error().empty() ? NoVersion::kNone : NoVersion::kNoCode;
}

absl::StatusOr<History> ReadHistory(const Steps& steps) {
  History history;
  for (size_t i = 0; i < steps.size(); ++i) {
    const v1::Step& step = steps[i];
    if (step.number() != i) {
      return absl::DataLossError(
          absl::StrCat("step ", step.number(), " stands where step ", i, " belongs"));
    }
    history.last_at = TimeOf(step);
    if (i % 2 == 0 && step.has_reply()) {
      AddReply(step.reply(), history.last_at, &history);
    } else if (i % 2 == 1 && step.has_result()) {
      AddResult(step.result(), step.number(), &history);
    } else {
      return absl::DataLossError(absl::StrCat("step ", i, " is not a ",
                                              i % 2 == 0 ? "reply" : "result",
                                              ": replies and results alternate"));
    }
  }
  return history;
}

}  // namespace kmosaic
