#include "agent_runner/llm/chat_dialect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace kmosaic {

ChatDialect DialectOf(const v1::Dialect& profile) {
  auto sent = [&](const char* parameter) {
    return std::find(profile.omit().begin(), profile.omit().end(), parameter) ==
           profile.omit().end();
  };
  ChatDialect dialect;
  dialect.max_completion_tokens = profile.max_completion_tokens();
  dialect.temperature = sent("temperature");
  dialect.top_p = sent("top_p");
  dialect.seed = sent("seed");
  dialect.stream_options = sent("stream_options");
  dialect.parallel_tool_calls = sent("parallel_tool_calls");
  dialect.extra = profile.extra();
  return dialect;
}

ChatDialect AdaptDialect(const ChatDialect& dialect, std::string_view error_text) {
  std::string text = absl::AsciiStrToLower(std::string(error_text));
  ChatDialect adapted = dialect;
  // The first complaint that applies; a text may name the right parameter beside the
  // wrong one ("use max_completion_tokens instead of max_tokens").
  bool names_new = absl::StrContains(text, "max_completion_tokens");
  bool names_old = absl::StrContains(text, "max_tokens");
  if (!dialect.max_completion_tokens && names_old &&
      (names_new || absl::StrContains(text, "unsupported") ||
       absl::StrContains(text, "not supported"))) {
    adapted.max_completion_tokens = true;
  } else if (dialect.max_completion_tokens && names_new) {
    adapted.max_completion_tokens = false;
  } else if (dialect.stream_options && (absl::StrContains(text, "stream_options") ||
                                        absl::StrContains(text, "include_usage"))) {
    adapted.stream_options = false;
  } else if (dialect.parallel_tool_calls && absl::StrContains(text, "parallel_tool")) {
    adapted.parallel_tool_calls = false;
  } else if (dialect.temperature && absl::StrContains(text, "temperature")) {
    adapted.temperature = false;
  } else if (dialect.top_p && absl::StrContains(text, "top_p")) {
    adapted.top_p = false;
  } else if (dialect.seed && absl::StrContains(text, "seed")) {
    adapted.seed = false;
  }
  return adapted;
}

std::string WithExtra(const std::string& body, const ChatDialect& dialect) {
  if (dialect.extra.empty()) return body;
  using Json = nlohmann::ordered_json;
  Json object = Json::parse(body);
  Json extra = Json::parse(dialect.extra, nullptr, false);
  if (extra.is_object()) object.update(extra);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kmosaic
