#include "agent_runner/llm/replay_endpoint.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent_runner/llm/json_members.h"
#include "agent_runner/llm/thinking.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

using nlohmann::json;

absl::StatusOr<uint32_t> Count(const std::string& key, const json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(key, " must be a whole number from 0"));
  }
  return value.get<uint32_t>();
}

}  // namespace

ReplayEndpoint::ReplayEndpoint(std::string name, std::string model, std::vector<Line> lines)
    : name_(std::move(name)), model_(std::move(model)), lines_(std::move(lines)) {}

absl::Status ReplayEndpoint::ParseReply(const std::string& key, const json& value,
                                        v1::ModelReply* reply) {
  if (key == "tool_calls") {
    if (!value.is_array()) return absl::InvalidArgumentError("tool_calls must be a list");
    for (const json& item : value) {
      v1::ToolCall& call = *reply->add_tool_calls();
      call.set_id(TextOf(Member(item, "id")));
      call.set_name(TextOf(Member(item, "name")));
      call.set_arguments(TextOf(Member(item, "arguments")));
    }
    return absl::OkStatus();
  }
  if (key == "usage") {
    if (!value.is_object()) return absl::InvalidArgumentError("usage must be an object");
    v1::Usage& usage = *reply->mutable_usage();
    usage.set_prompt_tokens(CountOf(Member(value, "prompt_tokens")));
    usage.set_cached_prompt_tokens(CountOf(Member(value, "cached_prompt_tokens")));
    usage.set_completion_tokens(CountOf(Member(value, "completion_tokens")));
    usage.set_reasoning_tokens(CountOf(Member(value, "reasoning_tokens")));
    usage.set_estimated(Member(value, "estimated") == true);
    const json& cost = Member(value, "cost_usd");
    usage.set_cost_usd(cost.is_number() ? cost.get<double>() : 0);
    return absl::OkStatus();
  }
  if (!value.is_string()) return absl::InvalidArgumentError(absl::StrCat(key, " must be a string"));
  std::string text = value.get<std::string>();
  if (key == "content") reply->set_content(std::move(text));
  if (key == "reasoning") reply->set_reasoning(std::move(text));
  if (key == "finish_reason") reply->set_finish_reason(std::move(text));
  if (key == "model") reply->set_model(std::move(text));
  return absl::OkStatus();
}

absl::StatusOr<ReplayEndpoint::Line> ReplayEndpoint::ParseLine(const std::string& text) {
  static const std::set<std::string> kOfReply = {"content", "reasoning",  "finish_reason",
                                                 "model",   "tool_calls", "usage"};
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object");
  Line line;
  for (const char* key : {"task", "turn", "content"}) {
    if (!object.contains(key)) {
      return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is missing"));
    }
  }
  for (const auto& [key, value] : object.items()) {
    if (kOfReply.count(key) > 0) {
      KMOSAIC_RETURN_IF_ERROR(ParseReply(key, value, &line.reply));
    } else if (key == "task" || key == "note") {
      if (!value.is_string())
        return absl::InvalidArgumentError(absl::StrCat(key, " must be a string"));
      if (key == "task") line.task = value.get<std::string>();
    } else if (key == "turn") {
      KMOSAIC_ASSIGN_OR_RETURN(line.turn, Count(key, value));
    } else if (key == "sample") {
      KMOSAIC_ASSIGN_OR_RETURN(line.sample, Count(key, value));
    } else if (key == "views") {
      if (!value.is_array()) return absl::InvalidArgumentError("views must be a list of strings");
      line.views.emplace();
      for (const json& item : value) {
        std::optional<v1::View> view =
            item.is_string() ? ParseView(item.get<std::string>()) : std::nullopt;
        if (!view) {
          return absl::InvalidArgumentError("views may hold 'description', 'reference' and 'spec'");
        }
        line.views->insert(*view);
      }
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown key '", key, "'"));
    }
  }
  if (!object.contains("reasoning")) {
    SplitReply split = SplitThinking(line.reply.content());
    line.reply.set_content(std::move(split.answer));
    line.reply.set_reasoning(std::move(split.reasoning));
  }
  if (!object.contains("finish_reason")) line.reply.set_finish_reason("stop");
  return line;
}

absl::StatusOr<std::unique_ptr<ReplayEndpoint>> ReplayEndpoint::Make(const v1::Endpoint& endpoint) {
  std::vector<Line> lines;
  std::istringstream input(endpoint.recordings());
  std::string text;
  for (int number = 1; std::getline(input, text); ++number) {
    if (absl::StripAsciiWhitespace(text).empty()) continue;
    absl::StatusOr<Line> line = ParseLine(text);
    if (!line.ok()) return Annotate(line.status(), absl::StrCat("recordings, line ", number));
    lines.push_back(*std::move(line));
  }
  return std::unique_ptr<ReplayEndpoint>(
      new ReplayEndpoint(endpoint.name(), endpoint.model(), std::move(lines)));
}

LlmResult ReplayEndpoint::Complete(const LlmRequest& request, CancelToken& cancel) {
  if (cancel.cancelled()) return LlmError{LlmError::Kind::kCancelled, "called off"};
  std::set<v1::View> views;
  for (int view : request.views.views()) views.insert(static_cast<v1::View>(view));
  for (const Line& line : lines_) {
    bool fits = line.task == request.task && line.turn == request.turn &&
                (!line.views || *line.views == views) &&
                (!line.sample || *line.sample == request.sample);
    if (!fits) continue;
    v1::ModelReply reply = line.reply;
    reply.set_endpoint(name_);
    if (reply.model().empty()) reply.set_model(model_);
    reply.set_temperature(request.sampling.temperature());
    reply.set_max_tokens(request.sampling.max_tokens());
    if (!reply.has_usage()) {
      v1::Usage& usage = *reply.mutable_usage();
      usage.set_prompt_tokens(EstimateTokens(request.messages));
      usage.set_completion_tokens(EstimateTokens(reply.content()) +
                                  EstimateTokens(reply.reasoning()));
      usage.set_reasoning_tokens(EstimateTokens(reply.reasoning()));
      usage.set_estimated(true);
    }
    reply.mutable_usage()->set_requests(1);
    return reply;
  }
  return LlmError{
      LlmError::Kind::kRecordingEnded,
      absl::StrCat("the recording has no reply number ", request.turn, " of task ", request.task,
                   " with views ", ViewSetName(request.views), ", sample ", request.sample)};
}

}  // namespace kmosaic
