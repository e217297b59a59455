// A reply put together from its JSON: from the events of a stream, or whole.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_CHAT_REPLY_H_
#define KMOSAIC_AGENT_RUNNER_LLM_CHAT_REPLY_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "agent_runner/llm/llm_endpoint.h"

namespace kmosaic {

// What all APIs have in common; one class per API reads its objects. Pure; one thread at
// a time.
class ChatReply {
 public:
  virtual ~ChatReply() = default;

  // Data of one event. False once nothing further is to be read: after the end mark or an
  // error.
  bool AddEvent(std::string_view data);

  // Body of a reply that was not streamed.
  void AddBody(std::string_view body);

  // An error object in the stream or body, or JSON that cannot be read.
  const std::optional<LlmError>& error() const { return error_; }
  // A finish reason or the end mark was seen.
  bool complete() const { return done_ || !finish_reason_.empty(); }

  // Content (reasoning in tags taken apart), reasoning, tool calls in the order of their
  // indexes, finish_reason, model (as the server names it) and usage tokens. Where the
  // server sent no usage, or all zeros, tokens are estimated from `prompt_tokens` and the
  // text, and marked so.
  v1::ModelReply Finish(uint64_t estimated_prompt_tokens) const;

 protected:
  // One event's object or the whole body.
  virtual void AddObject(const nlohmann::json& object) = 0;
  // Whether this object is a whole reply.
  virtual bool IsReply(const nlohmann::json& object) const = 0;

  // For AddObject:
  void AddContent(const std::string& text) { content_ += text; }
  void AddReasoning(const std::string& text) { reasoning_ += text; }
  // Pieces of the tool call with this index: the first id and name count, arguments add up.
  void AddToolCall(uint64_t index, const std::string& id, const std::string& name,
                   const std::string& arguments);
  void SetModel(const std::string& model);
  void SetFinishReason(const std::string& reason);
  void SetDone() { done_ = true; }
  void Fail(LlmError error) { error_ = std::move(error); }
  // Totals: where they come several times the last ones count.
  v1::Usage& MutableUsage();

 private:
  std::string content_;
  std::string reasoning_;
  std::map<uint64_t, v1::ToolCall> tool_calls_;
  std::string finish_reason_;
  std::string model_;
  std::optional<LlmError> error_;
  bool done_ = false;
  bool has_usage_ = false;
  // Some JSON string held half of a surrogate pair.
  bool split_surrogates_ = false;
  v1::Usage usage_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_CHAT_REPLY_H_
