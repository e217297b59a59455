// OpenAI-compatible chat completions.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_OPENAI_ENDPOINT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_OPENAI_ENDPOINT_H_

#include <mutex>
#include <string>
#include <string_view>

#include "agent_runner/llm/http_call.h"
#include "agent_runner/llm/llm_endpoint.h"
#include "common/base/clock.h"

namespace kmosaic {

// What servers disagree about.
struct ChatDialect {
  bool max_completion_tokens = false;  // instead of max_tokens
  bool temperature = true;
  bool top_p = true;
  bool seed = true;
  bool stream_options = true;

  bool operator==(const ChatDialect&) const = default;
};

// JSON body of a request. Messages that hold no text are left out: no server takes null,
// and many refuse the empty string.
std::string ChatRequestBody(const v1::Endpoint& endpoint, const LlmRequest& request,
                            const ChatDialect& dialect);

// The dialect that avoids what a 400 or 422 with this text complains about; the same one
// where it complains about something else.
ChatDialect AdaptDialect(const ChatDialect& dialect, std::string_view error_text);

class OpenAiEndpoint : public LlmEndpoint {
 public:
  struct Limits {
    absl::Duration connect = absl::Seconds(10);
    // Until the first byte of a streamed answer; what is not streamed has only the total.
    absl::Duration first_byte = absl::Minutes(5);
    absl::Duration idle = absl::Minutes(2);
    // Used where the endpoint names no timeout.
    absl::Duration total = absl::Minutes(10);
  };

  // `clock` must outlive the endpoint. The key is read from the environment with each
  // call; a variable that is named but not set is kAuth.
  OpenAiEndpoint(const v1::Endpoint& endpoint, const Clock& clock);
  OpenAiEndpoint(const v1::Endpoint& endpoint, const Clock& clock, const Limits& limits);

  // A refusal of a parameter is answered with another dialect at once, and remembered
  // for later calls; such refusals are not paid for.
  LlmResult Complete(const LlmRequest& request, CancelToken& cancel) override;

 private:
  LlmResult CallOnce(const LlmRequest& request, const ChatDialect& dialect, CancelToken& cancel);
  ChatDialect dialect();

  const v1::Endpoint endpoint_;
  const Clock& clock_;
  const Limits limits_;
  HttpClient http_;
  std::mutex mutex_;
  ChatDialect dialect_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_OPENAI_ENDPOINT_H_
