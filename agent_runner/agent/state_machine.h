// What a conversation does next. Pure: everything follows from the job, the task and the
// recorded steps, so that another runner goes on exactly where the last one ended.
//
//   steps end with    next
//   nothing, result   CallModel, or Stop
//   reply             Evaluate, or RecordResult where there is nothing to evaluate
//
// The caller does what the action says, appends one step and asks again.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_STATE_MACHINE_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_STATE_MACHINE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent_runner/agent/history.h"
#include "agent_runner/agent/stop_rules.h"
#include "agent_runner/guidance/guidance_library.h"
#include "agent_runner/llm/llm_endpoint.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// Everything must outlive the calls below.
struct ConversationSpec {
  const v1::JobSpec* job = nullptr;
  const v1::TaskSpec* task = nullptr;
  const v1::ViewSet* views = nullptr;
  uint32_t sample = 0;
  const GuidanceLibrary* guidance = nullptr;
};

// What an endpoint has taught about its window in this process. Not recorded: a later
// holder learns it again from a refused, unpaid call.
struct ContextHints {
  double token_scale = 1;
  // 0: the job's own.
  uint32_t window_tokens = 0;
};

// Ask the model; record the reply with what this says about it before anything else.
struct CallModel {
  v1::Stage stage = v1::STAGE_IMPLEMENT;
  // Number of this reply, from 0.
  uint32_t turn = 0;
  // All that is sent.
  std::vector<v1::ChatMessage> messages;
  // The part of it that is new since the last reply. Where earlier messages were left
  // out it is all of `messages`, and then begins with the system message: the
  // conversation as the model saw it can always be rebuilt from the steps.
  std::vector<v1::ChatMessage> added;
  // Without `temperatures`: this sample's own is chosen.
  v1::Sampling sampling;
  std::vector<ToolSpec> tools;
  // Ids of documents in the context, and of those that the trial withholds from it.
  std::vector<std::string> guidance;
  std::vector<std::string> guidance_withheld;
  // Numbers of earlier replies that the context does not hold any more.
  std::vector<uint32_t> left_out;
};

// Judge this solution, then record MakeResult.
struct Evaluate {
  v1::Solution solution;
  bool benchmark = false;
};

// Record this result as it is: there is no new version to judge.
struct RecordResult {
  v1::TurnResult result;
};

// The conversation is over.
struct Stop {
  v1::ItemResult result;
};

using Action = std::variant<CallModel, Evaluate, RecordResult, Stop>;

// `now` only counts against budgets. DATA_LOSS for steps that are no conversation.
absl::StatusOr<Action> NextAction(const ConversationSpec& spec, const Steps& steps, absl::Time now,
                                  const ContextHints& hints = {}, const JobStanding& standing = {});

// The result of the reply that `steps` ends with, after Evaluate.
absl::StatusOr<v1::TurnResult> MakeResult(const ConversationSpec& spec, const Steps& steps,
                                          const v1::EvaluationReport& report);

// The end of a conversation for a reason from outside (cancelled, recording ended, ...).
// A recording that ends after a verified version makes it solved.
absl::StatusOr<v1::ItemResult> MakeStop(const Steps& steps, v1::StopReason reason,
                                        const std::string& text);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_STATE_MACHINE_H_
