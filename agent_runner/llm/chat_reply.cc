#include "agent_runner/llm/chat_reply.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent_runner/llm/lone_surrogates.h"
#include "agent_runner/llm/thinking.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr size_t kErrorTextBytes = 1000;

// Member `key` of an object; null json where it is not there.
const json& Member(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string Text(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

uint64_t Tokens(const json& usage, const char* key) {
  const json& value = Member(usage, key);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

// Parses what `text` holds, also with halves of surrogate pairs and broken UTF-8.
json ParseLeniently(std::string_view text, bool* split_surrogates) {
  json object = json::parse(text, nullptr, false);
  if (!object.is_discarded()) return object;
  std::string repaired = HideLoneSurrogates(text, split_surrogates);
  return json::parse(ToValidUtf8(repaired), nullptr, false);
}

// The human text of an error body in any of the usual forms.
std::string ErrorMessage(std::string_view body) {
  json object = json::parse(body, nullptr, false);
  const json& error = Member(object, "error");
  std::string text;
  for (const json* candidate :
       {&Member(error, "message"), &Member(object, "message"), &Member(object, "detail"), &error}) {
    if (text.empty()) text = Text(*candidate);
  }
  for (const char* key : {"type", "code"}) {
    std::string word = Text(Member(error, key));
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
  return ContainsAny(
      text, {"context_length_exceeded", "maximum context length", "context size", "context window",
             "context length", "prompt is too long", "exceed_context_size",
             "exceeds the available context", "too many tokens", "input is too long"});
}

// The window in tokens that the text of an overflow names; 0 where it names none.
uint32_t WindowOf(const std::string& text) {
  static const RE2 kForms[] = {
      RE2(R"(maximum context length (?:is|of) (\d+))"),
      RE2(R"(context (?:size|window|length)[^0-9]{0,20}(\d+))"),
      RE2(R"(> (\d+) maximum)"),
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

bool ChatReply::AddEvent(std::string_view data) {
  if (done_ || error_) return false;
  if (absl::StripAsciiWhitespace(absl::string_view(data.data(), data.size())) == "[DONE]") {
    done_ = true;
    return false;
  }
  json object = ParseLeniently(data, &split_surrogates_);
  if (!object.is_object()) {
    error_ = LlmError{LlmError::Kind::kBadReply,
                      absl::StrCat("an event of the stream is no JSON object: ",
                                   ToValidUtf8(TruncateUtf8(data, 200)))};
    return false;
  }
  AddObject(object);
  return !error_;
}

void ChatReply::AddBody(std::string_view body) {
  json object = ParseLeniently(body, &split_surrogates_);
  if (!object.is_object() ||
      (!Member(object, "choices").is_array() && Member(object, "error").is_null())) {
    error_ = LlmError{LlmError::Kind::kBadReply,
                      absl::StrCat("the reply is no chat completion; it begins: ",
                                   ToValidUtf8(TruncateUtf8(body, 200)))};
    return;
  }
  AddObject(object);
  if (!error_ && finish_reason_.empty()) done_ = true;
}

void ChatReply::AddObject(const json& object) {
  if (!Member(object, "error").is_null()) {
    error_ = ClassifyError(0, object.dump(-1, ' ', false, json::error_handler_t::replace));
    return;
  }
  if (model_.empty()) model_ = Text(Member(object, "model"));
  AddUsage(Member(object, "usage"));
  const json& choices = Member(object, "choices");
  if (!choices.is_array() || choices.empty()) return;
  const json& choice = choices[0];
  const json& delta = Member(choice, "delta");
  const json& part = delta.is_object() ? delta : Member(choice, "message");
  content_ += Text(Member(part, "content"));
  std::string reasoning = Text(Member(part, "reasoning_content"));
  reasoning_ += reasoning.empty() ? Text(Member(part, "reasoning")) : reasoning;
  std::string finish = Text(Member(choice, "finish_reason"));
  if (!finish.empty()) finish_reason_ = finish;
}

void ChatReply::AddUsage(const json& usage) {
  if (!usage.is_object()) return;
  // Where usage comes several times the last one counts: it is a total, not a part.
  has_usage_ = true;
  usage_.set_prompt_tokens(Tokens(usage, "prompt_tokens"));
  usage_.set_completion_tokens(Tokens(usage, "completion_tokens"));
  usage_.set_reasoning_tokens(
      Tokens(Member(usage, "completion_tokens_details"), "reasoning_tokens"));
}

v1::ModelReply ChatReply::Finish(uint64_t estimated_prompt_tokens) const {
  v1::ModelReply reply;
  std::string content = split_surrogates_ ? JoinHiddenSurrogates(content_) : content_;
  std::string reasoning = split_surrogates_ ? JoinHiddenSurrogates(reasoning_) : reasoning_;
  SplitReply split = SplitThinking(content);
  reply.set_content(std::move(split.answer));
  reply.set_reasoning(reasoning.empty() ? split.reasoning : reasoning);
  reply.set_finish_reason(finish_reason_);
  reply.set_model(model_);
  v1::Usage& usage = *reply.mutable_usage();
  usage = usage_;
  bool all_zero = usage.prompt_tokens() == 0 && usage.completion_tokens() == 0;
  if (!has_usage_ || all_zero) {
    usage.set_prompt_tokens(estimated_prompt_tokens);
    usage.set_completion_tokens(EstimateTokens(content) + EstimateTokens(reasoning));
    usage.set_reasoning_tokens(EstimateTokens(reply.reasoning()));
    usage.set_estimated(true);
  }
  return reply;
}

}  // namespace kmosaic
