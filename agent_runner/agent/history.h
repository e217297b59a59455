// What the recorded steps of a conversation say, in the form that decisions need.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_HISTORY_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/enum_names.h"

namespace kmosaic {

using Steps = std::vector<v1::Step>;

// Why a reply gave no new version. The name and ": " begin TurnResult.extraction_error.
enum class NoVersion {
  kNone,
  kTruncated,
  kNoEntryPoint,
  kUnfenced,
  kNoCode,
  kEmpty,         // the reply holds no text
  kDegenerate,    // the reply repeats itself without end
  kBadToolCall,   // unknown tool, or arguments that it does not take
  kReadGuidance,  // a document was asked for; no version was handed in
};

std::string NoVersionName(NoVersion kind);
// kNone when `extraction_error` is empty.
NoVersion NoVersionOf(const v1::TurnResult& result);

// Points into the steps it was made from; they must outlive it and stay unchanged.
struct History {
  // As the model saw them in the last call, followed by its reply.
  std::vector<v1::ChatMessage> messages;
  // Numbers (from 0) of the replies among them, in their order.
  std::vector<uint32_t> replies_in_context;
  // Ids of the guidance documents among them.
  std::vector<std::string> guidance;
  // Ids of those that were withheld from the conversation so far.
  std::vector<std::string> guidance_withheld;

  v1::Usage usage;
  uint32_t turns = 0;
  uint32_t optimise_turns = 0;
  // Moment of the first call; unset before it.
  std::optional<absl::Time> started;
  absl::Time last_at;

  // The last step: at most one is set; both are null before the first reply.
  const v1::ModelReply* pending_reply = nullptr;
  const v1::TurnResult* last_result = nullptr;
  // Reply that last_result is about, and whether it was the model's last word (`submit`).
  const v1::ModelReply* last_reply = nullptr;
  bool last_word = false;

  // Best verified version: its result, the number of its step and its reply.
  const v1::TurnResult* best = nullptr;
  uint32_t best_step = 0;
  const v1::ModelReply* best_reply = nullptr;
  // Number of that reply, from 0.
  uint32_t best_turn = 0;
  // The first verified version.
  const v1::TurnResult* first_verified = nullptr;
  // Last result with a report, whatever its verdict.
  const v1::TurnResult* last_judged = nullptr;

  // Normalised digest of each judged solution -> turn (from 1) and result of its first time.
  struct Judged {
    uint32_t turn = 0;
    const v1::TurnResult* result = nullptr;
  };
  std::map<std::string, Judged> judged;
  // Turn (from 1) that last_result's solution repeats; 0 where it is new.
  uint32_t repeats_turn = 0;

  // Lengths of the run of such turns up to now.
  uint32_t resubmissions_in_a_row = 0;
  uint32_t no_version_in_a_row = 0;
  // Replies that only ask for guidance; they do not end a run of the others.
  uint32_t reads_in_a_row = 0;
  uint32_t degenerate_in_a_row = 0;
  // Optimisation turns that gave no better version.
  uint32_t unpaid_in_a_row = 0;
};

// DATA_LOSS naming the step when numbers have gaps or replies and results do not
// alternate.
absl::StatusOr<History> ReadHistory(const Steps& steps);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_HISTORY_H_
