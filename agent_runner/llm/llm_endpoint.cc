#include "agent_runner/llm/llm_endpoint.h"

namespace kmosaic {

std::string LlmErrorName(LlmError::Kind kind) {
  switch (kind) {
    case LlmError::Kind::kUnavailable:
      return "unavailable";
    case LlmError::Kind::kRateLimited:
      return "rate_limited";
    case LlmError::Kind::kTimeout:
      return "timeout";
    case LlmError::Kind::kTruncatedStream:
      return "truncated_stream";
    case LlmError::Kind::kContextOverflow:
      return "context_overflow";
    case LlmError::Kind::kAuth:
      return "auth";
    case LlmError::Kind::kBadRequest:
      return "bad_request";
    case LlmError::Kind::kBadReply:
      return "bad_reply";
    case LlmError::Kind::kRecordingEnded:
      return "recording_ended";
    case LlmError::Kind::kCancelled:
      return "cancelled";
  }
  return "unavailable";
}

bool IsRetryable(LlmError::Kind kind) {
  return kind == LlmError::Kind::kUnavailable || kind == LlmError::Kind::kRateLimited ||
         kind == LlmError::Kind::kTimeout || kind == LlmError::Kind::kTruncatedStream ||
         kind == LlmError::Kind::kBadReply;
}

}  // namespace kmosaic
