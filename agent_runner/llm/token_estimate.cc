#include "agent_runner/llm/token_estimate.h"

namespace kmosaic {
namespace {

constexpr uint64_t kBytesPerToken = 3;
constexpr uint64_t kTokensPerMessage = 8;

}  // namespace

uint64_t EstimateTokens(std::string_view text) {
  return (text.size() + kBytesPerToken - 1) / kBytesPerToken;
}

uint64_t EstimateTokens(const std::vector<v1::ChatMessage>& messages) {
  uint64_t tokens = 0;
  for (const v1::ChatMessage& message : messages) {
    tokens += EstimateTokens(message.content()) + kTokensPerMessage;
    for (const v1::ToolCall& call : message.tool_calls()) {
      tokens += EstimateTokens(call.arguments()) + kTokensPerMessage;
    }
  }
  return tokens;
}

}  // namespace kmosaic
