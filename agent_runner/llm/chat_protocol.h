// The chat APIs that differ only in what their messages look like.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_CHAT_PROTOCOL_H_
#define KMOSAIC_AGENT_RUNNER_LLM_CHAT_PROTOCOL_H_

#include <memory>
#include <string>
#include <vector>

#include "agent_runner/llm/chat_dialect.h"
#include "agent_runner/llm/chat_reply.h"
#include "agent_runner/llm/llm_endpoint.h"

namespace kmosaic {

// Pure; any thread.
class ChatProtocol {
 public:
  virtual ~ChatProtocol() = default;

  // What follows the base URL.
  virtual std::string Path() const = 0;
  // Headers besides the content's; `key` may be empty.
  virtual std::vector<std::string> Headers(const std::string& key) const = 0;
  // JSON body of a request. Messages that hold nothing are left out: no server takes null,
  // and many refuse the empty string.
  virtual std::string Body(const v1::Endpoint& endpoint, const LlmRequest& request,
                           const ChatDialect& dialect) const = 0;
  virtual std::unique_ptr<ChatReply> NewReply() const = 0;
};

// https://platform.openai.com/docs/api-reference/chat; spoken by most servers.
class OpenAiProtocol : public ChatProtocol {
 public:
  std::string Path() const override { return "/chat/completions"; }
  std::vector<std::string> Headers(const std::string& key) const override;
  std::string Body(const v1::Endpoint& endpoint, const LlmRequest& request,
                   const ChatDialect& dialect) const override;
  std::unique_ptr<ChatReply> NewReply() const override;
};

// https://docs.anthropic.com/en/api/messages
class AnthropicProtocol : public ChatProtocol {
 public:
  std::string Path() const override { return "/messages"; }
  std::vector<std::string> Headers(const std::string& key) const override;
  std::string Body(const v1::Endpoint& endpoint, const LlmRequest& request,
                   const ChatDialect& dialect) const override;
  std::unique_ptr<ChatReply> NewReply() const override;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_CHAT_PROTOCOL_H_
