// Makes a conversation fit into a model's context window.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_CONTEXT_WINDOW_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_CONTEXT_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/enum_names.h"

namespace kmosaic {

struct ContextLimits {
  // Tokens of prompt and reply together; 0 = unlimited.
  uint32_t window_tokens = 0;
  // Wanted for the reply.
  uint32_t max_tokens = 0;
  // Estimated tokens are multiplied by this (an endpoint has said that they are more).
  double token_scale = 1;
};

struct FittedContext {
  std::vector<v1::ChatMessage> messages;
  // At most ContextLimits.max_tokens.
  uint32_t max_tokens = 0;
  // Which replies were left out, counted from 0 among the assistant's messages of `earlier`.
  std::vector<size_t> left_out;
};

// `earlier` is system, task, then assistant and user (or tool) in turn, ending with an
// assistant message (or only system, or empty); `next` is the message to send. In this
// order, until it fits:
//   1. the reply's cap is lowered, to no less than half of what is wanted;
//   2. the oldest turns between the task and the latest reply are left out, except the
//      reply number `best` (counted as left_out; unset: none) with the feedback to it;
//   3. of the latest reply and the best one only the best is kept;
//   4. the cap is lowered to 1024 tokens.
// Nothing when even that does not fit.
std::optional<FittedContext> FitContext(const std::vector<v1::ChatMessage>& earlier,
                                        const v1::ChatMessage& next, std::optional<size_t> best,
                                        const ContextLimits& limits);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_CONTEXT_WINDOW_H_
