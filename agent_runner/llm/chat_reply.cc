#include "agent_runner/llm/chat_reply.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent_runner/llm/json_members.h"
#include "agent_runner/llm/llm_errors.h"
#include "agent_runner/llm/lone_surrogates.h"
#include "agent_runner/llm/thinking.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 200;

// Parses what `text` holds, also with halves of surrogate pairs and broken UTF-8.
json ParseLeniently(std::string_view text, bool* split_surrogates) {
  json object = json::parse(text, nullptr, false);
  if (!object.is_discarded()) return object;
  std::string repaired = HideLoneSurrogates(text, split_surrogates);
  return json::parse(ToValidUtf8(repaired), nullptr, false);
}

LlmError BadReply(const std::string& what, std::string_view text) {
  return {LlmError::Kind::kBadReply,
          absl::StrCat(what, ToValidUtf8(TruncateUtf8(text, kShownBytes)))};
}

bool IsError(const json& object) { return !Member(object, "error").is_null(); }

LlmError ErrorIn(const json& object) {
  return ClassifyError(0, object.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

bool ChatReply::AddEvent(std::string_view data) {
  if (done_ || error_) return false;
  if (absl::StripAsciiWhitespace(absl::string_view(data.data(), data.size())) == "[DONE]") {
    done_ = true;
    return false;
  }
  json object = ParseLeniently(data, &split_surrogates_);
  if (!object.is_object()) {
    error_ = BadReply("an event of the stream is no JSON object: ", data);
  } else if (IsError(object)) {
    error_ = ErrorIn(object);
  } else {
    AddObject(object);
  }
  return !error_ && !done_;
}

void ChatReply::AddBody(std::string_view body) {
  json object = ParseLeniently(body, &split_surrogates_);
  if (object.is_object() && IsError(object)) {
    error_ = ErrorIn(object);
  } else if (!object.is_object() || !IsReply(object)) {
    error_ = BadReply("the reply is no chat completion; it begins: ", body);
  } else {
    AddObject(object);
    done_ = true;
  }
}

void ChatReply::AddToolCall(uint64_t index, const std::string& id, const std::string& name,
                            const std::string& arguments) {
  v1::ToolCall& call = tool_calls_[index];
  if (call.id().empty()) call.set_id(id);
  if (call.name().empty()) call.set_name(name);
  call.mutable_arguments()->append(arguments);
}

void ChatReply::SetModel(const std::string& model) {
  if (model_.empty()) model_ = model;
}

void ChatReply::SetFinishReason(const std::string& reason) {
  if (!reason.empty()) finish_reason_ = reason;
}

v1::Usage& ChatReply::MutableUsage() {
  has_usage_ = true;
  return usage_;
}

v1::ModelReply ChatReply::Finish(uint64_t estimated_prompt_tokens) const {
  auto joined = [this](const std::string& text) {
    return split_surrogates_ ? JoinHiddenSurrogates(text) : text;
  };
  v1::ModelReply reply;
  std::string content = joined(content_);
  std::string reasoning = joined(reasoning_);
  SplitReply split = SplitThinking(content);
  reply.set_content(std::move(split.answer));
  reply.set_reasoning(reasoning.empty() ? split.reasoning : reasoning);
  reply.set_finish_reason(finish_reason_);
  reply.set_model(model_);
  uint64_t call_tokens = 0;
  for (const auto& [index, call] : tool_calls_) {
    v1::ToolCall& added = *reply.add_tool_calls();
    added = call;
    added.set_arguments(joined(call.arguments()));
    call_tokens += EstimateTokens(added.arguments());
  }
  v1::Usage& usage = *reply.mutable_usage();
  usage = usage_;
  bool all_zero = usage.prompt_tokens() == 0 && usage.completion_tokens() == 0;
  if (!has_usage_ || all_zero) {
    usage.set_prompt_tokens(estimated_prompt_tokens);
    usage.set_completion_tokens(EstimateTokens(content) + EstimateTokens(reasoning) + call_tokens);
    usage.set_reasoning_tokens(EstimateTokens(reply.reasoning()));
    usage.set_estimated(true);
  }
  return reply;
}

}  // namespace kmosaic
