#include "agent_runner/agent/tools.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr char kEvaluate[] = "evaluate";
constexpr char kSubmit[] = "submit";
constexpr char kReadGuidance[] = "read_guidance";

constexpr char kOpeningTag[] = "<tool_call>";
constexpr char kClosingTag[] = "</tool_call>";

json StringParameter(const std::string& name, const std::string& description) {
  return {{"type", "object"},
          {"properties", {{name, {{"type", "string"}, {"description", description}}}}},
          {"required", {name}},
          {"additionalProperties", false}};
}

// JSON text in which control characters inside of strings are escaped.
std::string EscapeControls(const std::string& text) {
  std::string escaped;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (in_string && c == '\\' && i + 1 < text.size()) {
      escaped += text[i++];
    } else if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c < 0x20) {
      absl::StrAppendFormat(&escaped, "\\u%04x", c);
      continue;
    }
    escaped += text[i];
  }
  return escaped;
}

// A reply's last call before its arguments are read.
struct RawCall {
  std::string name;
  std::string arguments;
};

std::optional<RawCall> CallInText(const std::string& content) {
  size_t open = content.rfind(kOpeningTag);
  if (open == std::string::npos) return std::nullopt;
  size_t start = open + sizeof(kOpeningTag) - 1;
  size_t end = content.find(kClosingTag, start);
  std::string text = content.substr(start, end == std::string::npos ? end : end - start);
  json object = json::parse(EscapeControls(text), nullptr, false);
  if (!object.is_object() || !object.contains("name") || !object["name"].is_string()) {
    return RawCall{"", text};
  }
  const json arguments = object.value("arguments", json::object());
  return RawCall{object["name"],
                 arguments.is_string() ? arguments.get<std::string>() : arguments.dump()};
}

std::optional<RawCall> LastCall(const v1::ModelReply& reply) {
  if (reply.tool_calls().empty()) return CallInText(reply.content());
  const v1::ToolCall& call = *reply.tool_calls().rbegin();
  return RawCall{call.name(), call.arguments()};
}

ToolRequest Broken(ToolRequest request, bool cut, std::string error) {
  request.kind = cut ? ToolRequest::Kind::kTruncated : ToolRequest::Kind::kBroken;
  request.error = std::move(error);
  return request;
}

}  // namespace

std::vector<ToolSpec> Tools(const std::vector<std::string>& documents) {
  const json source = StringParameter("source", "the whole file");
  std::vector<ToolSpec> tools = {
      {kEvaluate,
       "Compiles the file, checks it against the reference, and measures it once it is right.",
       source.dump()},
      {kSubmit, "The same, for the file that is your last word: when it is right the task is done.",
       source.dump()},
  };
  if (!documents.empty()) {
    tools.push_back(
        {kReadGuidance,
         absl::StrCat("Shows a document on CUDA. There are: ", absl::StrJoin(documents, ", "), "."),
         StringParameter("name", "of the document").dump()});
  }
  return tools;
}

ToolRequest ReadToolCalls(const v1::ModelReply& reply) {
  ToolRequest request;
  std::optional<RawCall> call = LastCall(reply);
  if (!call) return request;
  bool cut = reply.finish_reason() == "length";
  request.name = call->name;
  request.arguments = EscapeControls(call->arguments);
  json arguments = json::parse(request.arguments, nullptr, false);
  if (!arguments.is_object()) {
    return Broken(std::move(request), cut, "its arguments are no complete JSON object");
  }
  auto text_of = [&](const char* key) {
    auto found = arguments.find(key);
    return found != arguments.end() && found->is_string() ? found->get<std::string>() : "";
  };
  bool judges = call->name == kEvaluate || call->name == kSubmit;
  if (!judges && call->name != kReadGuidance) {
    return Broken(std::move(request), false,
                  absl::StrCat("there is no tool named '", call->name, "'"));
  }
  const char* key = judges ? "source" : "name";
  std::string value = text_of(key);
  if (value.empty()) {
    return Broken(std::move(request), cut,
                  absl::StrCat("its argument '", key, "' is missing or no text"));
  }
  if (!judges) {
    request.kind = ToolRequest::Kind::kReadGuidance;
    request.document = std::move(value);
    return request;
  }
  request.kind = call->name == kSubmit ? ToolRequest::Kind::kSubmit : ToolRequest::Kind::kEvaluate;
  request.source = std::move(value);
  if (request.source.back() != '\n') request.source += '\n';
  return request;
}

v1::ChatMessage AssistantMessage(const v1::ModelReply& reply, uint32_t turn) {
  v1::ChatMessage message;
  message.set_role(v1::CHAT_ROLE_ASSISTANT);
  message.set_content(reply.content());
  if (reply.tool_calls().empty()) return message;
  ToolRequest request = ReadToolCalls(reply);
  bool broken =
      request.kind == ToolRequest::Kind::kBroken || request.kind == ToolRequest::Kind::kTruncated;
  if (broken) {
    // Servers parse the arguments of earlier calls, and fail on these.
    absl::StrAppend(message.mutable_content(), message.content().empty() ? "" : "\n", request.name,
                    " ", reply.tool_calls().rbegin()->arguments());
    return message;
  }
  v1::ToolCall& call = *message.add_tool_calls();
  call.set_id(absl::StrCat("call_", turn));
  call.set_name(request.name);
  call.set_arguments(request.arguments);
  return message;
}

v1::ChatMessage AnswerTo(const v1::ChatMessage& assistant, std::string text) {
  v1::ChatMessage message;
  message.set_content(std::move(text));
  message.set_role(v1::CHAT_ROLE_USER);
  if (assistant.tool_calls().empty()) return message;
  message.set_role(v1::CHAT_ROLE_TOOL);
  message.set_tool_call_id(assistant.tool_calls(0).id());
  return message;
}

}  // namespace kmosaic
