#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent_runner/llm/chat_protocol.h"
#include "agent_runner/llm/json_members.h"
#include "common/base/chat.h"

namespace kmosaic {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

class OpenAiReply : public ChatReply {
 protected:
  bool IsReply(const json& object) const override { return Member(object, "choices").is_array(); }

  void AddObject(const json& object) override {
    SetModel(TextOf(Member(object, "model")));
    AddUsage(Member(object, "usage"));
    const json& choices = Member(object, "choices");
    if (!choices.is_array() || choices.empty()) return;
    const json& choice = choices[0];
    const json& delta = Member(choice, "delta");
    const json& part = delta.is_object() ? delta : Member(choice, "message");
    AddContent(TextOf(Member(part, "content")));
    std::string reasoning = TextOf(Member(part, "reasoning_content"));
    AddReasoning(reasoning.empty() ? TextOf(Member(part, "reasoning")) : reasoning);
    const json& calls = Member(part, "tool_calls");
    if (calls.is_array()) {
      for (size_t i = 0; i < calls.size(); ++i) AddCall(calls[i], i);
    }
    SetFinishReason(TextOf(Member(choice, "finish_reason")));
  }

 private:
  void AddCall(const json& call, size_t position) {
    const json& index = Member(call, "index");
    const json& function = Member(call, "function");
    const json& arguments = Member(function, "arguments");
    // Some servers send the arguments as an object instead of its text.
    AddToolCall(index.is_number_unsigned() ? index.get<uint64_t>() : position,
                TextOf(Member(call, "id")), TextOf(Member(function, "name")),
                arguments.is_object() ? arguments.dump() : TextOf(arguments));
  }

  void AddUsage(const json& usage) {
    if (!usage.is_object()) return;
    v1::Usage& total = MutableUsage();
    total.set_prompt_tokens(CountOf(Member(usage, "prompt_tokens")));
    total.set_completion_tokens(CountOf(Member(usage, "completion_tokens")));
    total.set_reasoning_tokens(
        CountOf(Member(Member(usage, "completion_tokens_details"), "reasoning_tokens")));
    total.set_cached_prompt_tokens(
        CountOf(Member(Member(usage, "prompt_tokens_details"), "cached_tokens")));
  }
};

Json MessageOf(const v1::ChatMessage& message) {
  Json wire;
  wire["role"] = ChatRoleName(message.role());
  // Beside tool calls an empty content may be left out, and null is refused by some.
  if (!message.content().empty()) wire["content"] = message.content();
  for (const v1::ToolCall& call : message.tool_calls()) {
    wire["tool_calls"].push_back(
        {{"id", call.id()},
         {"type", "function"},
         {"function", {{"name", call.name()}, {"arguments", call.arguments()}}}});
  }
  if (!message.tool_call_id().empty()) wire["tool_call_id"] = message.tool_call_id();
  return wire;
}

}  // namespace

std::vector<std::string> OpenAiProtocol::Headers(const std::string& key) const {
  if (key.empty()) return {};
  return {absl::StrCat("Authorization: Bearer ", key)};
}

std::string OpenAiProtocol::Body(const v1::Endpoint& endpoint, const LlmRequest& request,
                                 const ChatDialect& dialect) const {
  Json body;
  body["model"] = endpoint.model();
  body["messages"] = Json::array();
  for (const v1::ChatMessage& message : request.messages) {
    if (message.content().empty() && message.tool_calls().empty()) continue;
    body["messages"].push_back(MessageOf(message));
  }
  for (const ToolSpec& tool : request.tools) {
    body["tools"].push_back({{"type", "function"},
                             {"function",
                              {{"name", tool.name},
                               {"description", tool.description},
                               {"parameters", Json::parse(tool.parameters)}}}});
  }
  if (!request.tools.empty() && dialect.parallel_tool_calls) body["parallel_tool_calls"] = false;
  const v1::Sampling& sampling = request.sampling;
  if (dialect.temperature) body["temperature"] = sampling.temperature();
  if (sampling.max_tokens() > 0) {
    body[dialect.max_completion_tokens ? "max_completion_tokens" : "max_tokens"] =
        sampling.max_tokens();
  }
  if (sampling.has_top_p() && dialect.top_p) body["top_p"] = sampling.top_p();
  if (sampling.has_seed() && dialect.seed) body["seed"] = sampling.seed();
  body["stream"] = endpoint.stream();
  if (endpoint.stream() && dialect.stream_options) {
    body["stream_options"] = {{"include_usage", true}};
  }
  return WithExtra(body.dump(-1, ' ', false, Json::error_handler_t::replace), dialect);
}

std::unique_ptr<ChatReply> OpenAiProtocol::NewReply() const {
  return std::make_unique<OpenAiReply>();
}

}  // namespace kmosaic
