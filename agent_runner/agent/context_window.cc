#include "agent_runner/agent/context_window.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "agent_runner/llm/token_estimate.h"

namespace kmosaic {
namespace {

using Messages = std::vector<v1::ChatMessage>;

constexpr uint32_t kLeastReplyTokens = 1024;
// System and task.
constexpr size_t kHead = 2;

// The cap that is left for the reply, at most `wanted`; 0 when less than `least` is left.
uint32_t CapFor(const Messages& messages, const ContextLimits& limits, uint32_t least) {
  if (limits.window_tokens == 0) return limits.max_tokens;
  double prompt = std::ceil(static_cast<double>(EstimateTokens(messages)) * limits.token_scale);
  double left = static_cast<double>(limits.window_tokens) - prompt;
  if (left < static_cast<double>(std::max(least, 1u))) return 0;
  uint32_t room = static_cast<uint32_t>(left);
  return limits.max_tokens == 0 ? room : std::min(limits.max_tokens, room);
}

bool IsReply(const v1::ChatMessage& message, const std::string& content) {
  return message.role() == v1::CHAT_ROLE_ASSISTANT && message.content() == content;
}

}  // namespace

std::optional<FittedContext> FitContext(const Messages& earlier, const v1::ChatMessage& next,
                                        const std::string& best, const ContextLimits& limits) {
  Messages messages = earlier;
  messages.push_back(next);
  const uint32_t half = std::max(limits.max_tokens / 2, 1u);
  bool trimmed = false;
  while (true) {
    if (uint32_t cap = CapFor(messages, limits, half); cap > 0) {
      return FittedContext{std::move(messages), limits.max_tokens == 0 ? 0 : cap, trimmed};
    }
    // Pairs (assistant, user) begin at kHead; the last one is the latest reply and `next`.
    size_t drop = kHead;
    while (drop + 2 < messages.size() && !best.empty() && IsReply(messages[drop], best)) drop += 2;
    if (drop + 2 >= messages.size()) break;
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(drop),
                   messages.begin() + static_cast<std::ptrdiff_t>(drop) + 2);
    trimmed = true;
  }
  if (messages.size() == kHead + 4) {  // best, its feedback, latest, next
    messages.erase(messages.begin() + kHead + 1, messages.begin() + kHead + 3);
    trimmed = true;
  }
  uint32_t least =
      limits.max_tokens == 0 ? kLeastReplyTokens : std::min(kLeastReplyTokens, limits.max_tokens);
  uint32_t cap = CapFor(messages, limits, std::min(half, least));
  if (cap == 0) return std::nullopt;
  return FittedContext{std::move(messages), limits.max_tokens == 0 ? 0 : cap, trimmed};
}

}  // namespace kmosaic
