// A chat completion put together from its JSON: from the events of a stream, or whole.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_CHAT_REPLY_H_
#define KMOSAIC_AGENT_RUNNER_LLM_CHAT_REPLY_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "agent_runner/llm/llm_endpoint.h"

namespace kmosaic {

// Pure; one thread at a time.
class ChatReply {
 public:
  // Data of one event. False once nothing further is to be read: after [DONE] or an
  // error.
  bool AddEvent(std::string_view data);

  // Body of a reply that was not streamed.
  void AddBody(std::string_view body);

  // An error object in the stream or body, or JSON that cannot be read.
  const std::optional<LlmError>& error() const { return error_; }
  // A finish reason or [DONE] was seen.
  bool complete() const { return done_ || !finish_reason_.empty(); }
  // Some text came.
  bool started() const { return !content_.empty() || !reasoning_.empty(); }

  // Content (reasoning in tags taken apart), reasoning, finish_reason, model (as the
  // server names it) and usage tokens. Where the server sent no usage, or all zeros for a
  // text that is not empty, tokens are estimated from `prompt_tokens` and the text, and
  // marked so.
  v1::ModelReply Finish(uint64_t estimated_prompt_tokens) const;

 private:
  void AddObject(const nlohmann::json& object);
  void AddUsage(const nlohmann::json& usage);

  std::string content_;
  std::string reasoning_;
  std::string finish_reason_;
  std::string model_;
  std::optional<LlmError> error_;
  bool done_ = false;
  bool has_usage_ = false;
  // Some JSON string held half of a surrogate pair.
  bool split_surrogates_ = false;
  v1::Usage usage_;
};

// What kind of error an error object or an error text is about. `status` is the HTTP
// status, 0 inside a stream.
LlmError ClassifyError(int status, std::string_view body);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_CHAT_REPLY_H_
