#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent_runner/llm/chat_protocol.h"
#include "agent_runner/llm/json_members.h"

namespace kmosaic {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

// The newest version of the API; it has not changed since.
constexpr char kVersionHeader[] = "anthropic-version: 2023-06-01";
// The API wants a cap; this one where the caller has none.
constexpr uint32_t kDefaultMaxTokens = 8192;

std::string FinishReasonOf(const std::string& stop_reason) {
  if (stop_reason == "end_turn" || stop_reason == "stop_sequence") return "stop";
  if (stop_reason == "max_tokens") return "length";
  if (stop_reason == "tool_use") return "tool_calls";
  return stop_reason;
}

class AnthropicReply : public ChatReply {
 protected:
  bool IsReply(const json& object) const override { return Member(object, "content").is_array(); }

  void AddObject(const json& object) override {
    std::string type = TextOf(Member(object, "type"));
    if (type == "message_start") {
      AddMessage(Member(object, "message"));
    } else if (type == "content_block_start") {
      AddBlock(CountOf(Member(object, "index")), Member(object, "content_block"));
    } else if (type == "content_block_delta") {
      AddDelta(CountOf(Member(object, "index")), Member(object, "delta"));
    } else if (type == "message_delta") {
      AddUsage(Member(object, "usage"));
      SetFinishReason(FinishReasonOf(TextOf(Member(Member(object, "delta"), "stop_reason"))));
    } else if (type == "message_stop") {
      SetDone();
    } else if (IsReply(object)) {
      AddMessage(object);
    }
  }

 private:
  void AddMessage(const json& message) {
    SetModel(TextOf(Member(message, "model")));
    AddUsage(Member(message, "usage"));
    const json& content = Member(message, "content");
    for (size_t i = 0; content.is_array() && i < content.size(); ++i) AddBlock(i, content[i]);
    SetFinishReason(FinishReasonOf(TextOf(Member(message, "stop_reason"))));
  }

  void AddBlock(uint64_t index, const json& block) {
    AddContent(TextOf(Member(block, "text")));
    AddReasoning(TextOf(Member(block, "thinking")));
    if (TextOf(Member(block, "type")) != "tool_use") return;
    // In a stream the input begins as {} and comes in deltas.
    const json& input = Member(block, "input");
    bool whole = input.is_object() && !input.empty();
    AddToolCall(index, TextOf(Member(block, "id")), TextOf(Member(block, "name")),
                whole ? input.dump() : "");
  }

  void AddDelta(uint64_t index, const json& delta) {
    AddContent(TextOf(Member(delta, "text")));
    AddReasoning(TextOf(Member(delta, "thinking")));
    const json& piece = Member(delta, "partial_json");
    if (piece.is_string()) AddToolCall(index, "", "", piece.get<std::string>());
  }

  // Counts come in two events, each with those that it knows.
  void AddUsage(const json& usage) {
    if (!usage.is_object()) return;
    v1::Usage& total = MutableUsage();
    if (usage.contains("input_tokens") && !Member(usage, "input_tokens").is_null()) {
      uint64_t cached = CountOf(Member(usage, "cache_read_input_tokens"));
      // What was read from or written to a cache is not part of input_tokens.
      total.set_prompt_tokens(CountOf(Member(usage, "input_tokens")) + cached +
                              CountOf(Member(usage, "cache_creation_input_tokens")));
      total.set_cached_prompt_tokens(cached);
    }
    if (usage.contains("output_tokens")) {
      total.set_completion_tokens(CountOf(Member(usage, "output_tokens")));
    }
  }
};

Json ToolUse(const v1::ToolCall& call) {
  Json input = Json::parse(call.arguments(), nullptr, false);
  return {{"type", "tool_use"},
          {"id", call.id()},
          {"name", call.name()},
          {"input", input.is_object() ? input : Json::object()}};
}

Json MessageOf(const v1::ChatMessage& message) {
  if (message.role() == v1::CHAT_ROLE_TOOL) {
    Json answer = {{"type", "tool_result"},
                   {"tool_use_id", message.tool_call_id()},
                   {"content", message.content()}};
    return {{"role", "user"}, {"content", Json::array({answer})}};
  }
  const char* role = message.role() == v1::CHAT_ROLE_ASSISTANT ? "assistant" : "user";
  if (message.tool_calls().empty()) return {{"role", role}, {"content", message.content()}};
  Json blocks = Json::array();
  if (!message.content().empty()) blocks.push_back({{"type", "text"}, {"text", message.content()}});
  for (const v1::ToolCall& call : message.tool_calls()) blocks.push_back(ToolUse(call));
  return {{"role", role}, {"content", blocks}};
}

}  // namespace

std::vector<std::string> AnthropicProtocol::Headers(const std::string& key) const {
  std::vector<std::string> headers = {kVersionHeader};
  if (!key.empty()) headers.push_back(absl::StrCat("x-api-key: ", key));
  return headers;
}

std::string AnthropicProtocol::Body(const v1::Endpoint& endpoint, const LlmRequest& request,
                                    const ChatDialect& dialect) const {
  Json body;
  body["model"] = endpoint.model();
  const v1::Sampling& sampling = request.sampling;
  body["max_tokens"] = sampling.max_tokens() > 0 ? sampling.max_tokens() : kDefaultMaxTokens;
  body["messages"] = Json::array();
  for (const v1::ChatMessage& message : request.messages) {
    if (message.content().empty() && message.tool_calls().empty()) continue;
    if (message.role() == v1::CHAT_ROLE_SYSTEM) {
      body["system"] = message.content();
    } else {
      body["messages"].push_back(MessageOf(message));
    }
  }
  for (const ToolSpec& tool : request.tools) {
    body["tools"].push_back({{"name", tool.name},
                             {"description", tool.description},
                             {"input_schema", Json::parse(tool.parameters)}});
  }
  if (!request.tools.empty() && dialect.parallel_tool_calls) {
    body["tool_choice"] = {{"type", "auto"}, {"disable_parallel_tool_use", true}};
  }
  // This API's scale ends at 1.
  if (dialect.temperature) body["temperature"] = std::min(sampling.temperature(), 1.0);
  if (sampling.has_top_p() && dialect.top_p) body["top_p"] = sampling.top_p();
  body["stream"] = endpoint.stream();
  return WithExtra(body.dump(-1, ' ', false, Json::error_handler_t::replace), dialect);
}

std::unique_ptr<ChatReply> AnthropicProtocol::NewReply() const {
  return std::make_unique<AnthropicReply>();
}

}  // namespace kmosaic
