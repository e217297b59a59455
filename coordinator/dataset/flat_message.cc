#include "coordinator/dataset/flat_message.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

// A fence longer than any run of backticks inside.
std::string FenceFor(const std::string& text) {
  size_t longest = 0;
  size_t run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max<size_t>(3, longest + 1), '`');
}

std::string TextOf(const v1::ToolCall& call, const std::string& language) {
  nlohmann::json arguments = nlohmann::json::parse(call.arguments(), nullptr, false);
  std::string text;
  bool hands_in = call.name() == "evaluate" || call.name() == "submit";
  if (hands_in && arguments.is_object() && arguments.contains("source") &&
      arguments["source"].is_string()) {
    text = arguments["source"].get<std::string>();
  }
  if (text.empty()) return absl::StrCat(call.name(), " ", call.arguments());
  std::string fence = FenceFor(text);
  bool ends_line = !text.empty() && text.back() == '\n';
  return absl::StrCat(fence, language, "\n", text, ends_line ? "" : "\n", fence, "\n");
}

std::string WithCall(const std::string& content, const v1::ToolCall& call,
                     const std::string& language) {
  return absl::StrCat(content, content.empty() ? "" : "\n", TextOf(call, language));
}

}  // namespace

v1::ChatMessage FlatMessage(const v1::ChatMessage& message, const std::string& language) {
  v1::ChatMessage flat;
  flat.set_role(message.role() == v1::CHAT_ROLE_TOOL ? v1::CHAT_ROLE_USER : message.role());
  flat.set_content(message.tool_calls().empty()
                       ? message.content()
                       : WithCall(message.content(), *message.tool_calls().rbegin(), language));
  return flat;
}

v1::ChatMessage FlatReply(const v1::ModelReply& reply, const std::string& language) {
  v1::ChatMessage message;
  message.set_role(v1::CHAT_ROLE_ASSISTANT);
  message.set_content(reply.content());
  *message.mutable_tool_calls() = reply.tool_calls();
  return FlatMessage(message, language);
}

}  // namespace kmosaic
