// Where a model's replies come from.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_LLM_ENDPOINT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_LLM_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "agent_runner/llm/cancel_token.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// A function that the model may call.
struct ToolSpec {
  std::string name;
  std::string description;
  // JSON schema of its arguments.
  std::string parameters;
};

struct LlmRequest {
  std::vector<v1::ChatMessage> messages;
  v1::Sampling sampling;
  // Empty: none are offered.
  std::vector<ToolSpec> tools;
  // Which conversation this is and which of its replies (from 0). Endpoints that talk to
  // a model do not send these.
  std::string task;
  v1::ViewSet views;
  uint32_t sample = 0;
  uint32_t turn = 0;
};

struct LlmError {
  enum class Kind {
    kUnavailable,      // away, refused the connection, 5xx, broke off
    kRateLimited,      // 429, or an error that says so
    kTimeout,          // one of the time limits
    kTruncatedStream,  // ended without a finish reason or its end mark
    kContextOverflow,  // prompt and reply do not fit into the model's window
    kAuth,             // key missing or refused
    kBadRequest,       // refused for good: the same request fails again
    kBadReply,         // what came back is no chat completion
    kRecordingEnded,   // replay: no further reply
    kCancelled,        // called off by the caller
  };
  Kind kind = Kind::kUnavailable;
  // What happened, where, and what to do; never holds a key.
  std::string message;
  // The server's wish; zero where it had none.
  absl::Duration retry_after;
  // kContextOverflow: the window in tokens, 0 where the server did not say.
  uint32_t window_tokens = 0;
  int http_status = 0;
};

// "unavailable", "rate_limited", ...
std::string LlmErrorName(LlmError::Kind kind);

// Whether the same request may succeed later.
bool IsRetryable(LlmError::Kind kind);

using LlmResult = std::variant<v1::ModelReply, LlmError>;

// Thread-safe.
class LlmEndpoint {
 public:
  virtual ~LlmEndpoint() = default;

  // One call, without retries that could be paid twice. The reply has content,
  // reasoning, tool_calls, finish_reason, usage (requests = 1), endpoint, model,
  // temperature, max_tokens, request_id and seconds filled in; content is valid UTF-8 and
  // may be empty. finish_reason is "length" where the reply was cut, in every API.
  virtual LlmResult Complete(const LlmRequest& request, CancelToken& cancel) = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_LLM_ENDPOINT_H_
