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
  if (limits.window_tokens == 0) {
    return limits.max_tokens == 0 ? std::numeric_limits<uint32_t>::max() : limits.max_tokens;
  }
  double prompt = std::ceil(static_cast<double>(EstimateTokens(messages)) * limits.token_scale);
  double left = static_cast<double>(limits.window_tokens) - prompt;
  if (left < static_cast<double>(std::max(least, 1u))) return 0;
  uint32_t room = static_cast<uint32_t>(left);
  return limits.max_tokens == 0 ? room : std::min(limits.max_tokens, room);
}

}  // namespace

std::optional<FittedContext> FitContext(const Messages& earlier, const v1::ChatMessage& next,
                                        std::optional<size_t> best, const ContextLimits& limits) {
  Messages messages = earlier;
  messages.push_back(next);
  const uint32_t half = std::max(limits.max_tokens / 2, 1u);
  FittedContext fitted;
  auto fits = [&](uint32_t cap) {
    fitted.messages = std::move(messages);
    fitted.max_tokens = limits.max_tokens == 0 ? 0 : cap;
    std::sort(fitted.left_out.begin(), fitted.left_out.end());
    return fitted;
  };
  // Pairs of a reply and what answers it begin at kHead; these are the replies' numbers.
  std::vector<size_t> pairs;
  for (size_t i = kHead; i < messages.size(); i += 2) pairs.push_back((i - kHead) / 2);
  while (true) {
    if (uint32_t cap = CapFor(messages, limits, half); cap > 0) return fits(cap);
    // The last pair is the latest reply and `next`.
    size_t drop = !pairs.empty() && pairs[0] == best ? 1 : 0;
    if (drop + 1 >= pairs.size()) break;
    auto first = messages.begin() + static_cast<std::ptrdiff_t>(kHead + 2 * drop);
    messages.erase(first, first + 2);
    fitted.left_out.push_back(pairs[drop]);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(drop));
  }
  if (pairs.size() == 2) {  // best, its feedback, latest, next
    messages.erase(messages.begin() + kHead + 1, messages.begin() + kHead + 3);
    fitted.left_out.push_back(pairs[1]);
  }
  uint32_t least =
      limits.max_tokens == 0 ? kLeastReplyTokens : std::min(kLeastReplyTokens, limits.max_tokens);
  uint32_t cap = CapFor(messages, limits, std::min(half, least));
  if (cap == 0) return std::nullopt;
  return fits(cap);
}

}  // namespace kmosaic
