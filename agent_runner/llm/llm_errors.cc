#include "agent_runner/llm/llm_errors.h"

#include <re2/re2.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent_runner/llm/json_members.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr size_t kErrorTextBytes = 1000;

// The human text of an error body in any of the usual forms.
std::string ErrorMessage(std::string_view body) {
  json object = json::parse(body, nullptr, false);
  const json& error = Member(object, "error");
  std::string text;
  for (const json* candidate :
       {&Member(error, "message"), &Member(object, "message"), &Member(object, "detail"), &error}) {
    if (text.empty()) text = TextOf(*candidate);
  }
  for (const char* key : {"type", "code"}) {
    std::string word = TextOf(Member(error, key));
    if (!word.empty() && !absl::StrContains(text, word)) absl::StrAppend(&text, " (", word, ")");
  }
  if (text.empty()) text = std::string(body);
  return ToValidUtf8(TruncateUtf8(text, kErrorTextBytes));
}

bool ContainsAny(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return absl::StrContains(text, word); });
}

bool IsContextOverflow(const std::string& text) {
  return ContainsAny(text, {"context_length_exceeded", "maximum context length", "context size",
                            "context window", "context length", "prompt is too long",
                            "exceed_context_size", "exceeds the available context",
                            "exceed context limit", "too many tokens", "input is too long"});
}

// The window in tokens that the text of an overflow names; 0 where it names none.
uint32_t WindowOf(const std::string& text) {
  static const RE2 kForms[] = {
      RE2(R"(maximum context length (?:is|of) (\d+))"),
      RE2(R"(context (?:size|window|length)[^0-9]{0,20}(\d+))"),
      RE2(R"(> (\d+) maximum)"),
      RE2(R"(context limit: \d+ \+ \d+ > (\d+))"),
  };
  for (const RE2& form : kForms) {
    uint32_t window = 0;
    if (RE2::PartialMatch(text, form, &window) && window > 0) return window;
  }
  return 0;
}

}  // namespace

LlmError ClassifyError(int status, std::string_view body) {
  LlmError error;
  error.http_status = status;
  std::string text = ErrorMessage(body);
  std::string lower = absl::AsciiStrToLower(absl::StrCat(text, " ", std::string(body)));
  error.message = status == 0 ? absl::StrCat("the endpoint reports in its stream: ", text)
                              : absl::StrCat("HTTP ", status, ": ", text);
  bool client_error = status == 0 || (status >= 400 && status < 500);
  if (status == 401 || status == 403) {
    error.kind = LlmError::Kind::kAuth;
  } else if (status == 429) {
    error.kind = LlmError::Kind::kRateLimited;
  } else if (client_error && IsContextOverflow(lower)) {
    error.kind = LlmError::Kind::kContextOverflow;
    error.window_tokens = WindowOf(lower);
  } else if (status == 408 || status == 409 || status == 425 || status >= 500) {
    error.kind = LlmError::Kind::kUnavailable;
  } else if (status >= 400) {
    error.kind = LlmError::Kind::kBadRequest;
  } else if (ContainsAny(lower, {"rate_limit", "rate limit", "too many requests"})) {
    error.kind = LlmError::Kind::kRateLimited;
  } else if (ContainsAny(lower,
                         {"invalid_request", "bad request", "badrequest", "invalid request"})) {
    error.kind = LlmError::Kind::kBadRequest;
  } else if (ContainsAny(lower, {"authentication", "invalid_api_key", "permission"})) {
    error.kind = LlmError::Kind::kAuth;
  } else {
    error.kind = LlmError::Kind::kUnavailable;
  }
  return error;
}

}  // namespace kmosaic
