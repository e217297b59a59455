#include "agent_runner/llm/http_endpoint.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent_runner/llm/chat_reply.h"
#include "agent_runner/llm/retry_after.h"
#include "agent_runner/llm/sse_parser.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/chat.h"

namespace kmosaic {
namespace {

constexpr int kDialectTries = 5;
constexpr size_t kMaxBodyBytes = 64 * 1024 * 1024;

std::string ChatUrl(const v1::Endpoint& endpoint) {
  return absl::StrCat(absl::StripSuffix(endpoint.url(), "/"), "/chat/completions");
}

LlmError ErrorOf(const HttpOutcome& outcome, const std::string& url, bool started) {
  LlmError error;
  error.http_status = outcome.status;
  error.message = absl::StrCat("POST ", url, ": ", outcome.message);
  switch (outcome.end) {
    case HttpOutcome::End::kCancelled:
      error.kind = LlmError::Kind::kCancelled;
      break;
    case HttpOutcome::End::kTimeout:
      error.kind = LlmError::Kind::kTimeout;
      break;
    case HttpOutcome::End::kBroken:
      error.kind = started ? LlmError::Kind::kTruncatedStream : LlmError::Kind::kUnavailable;
      break;
    default:
      error.kind = LlmError::Kind::kUnavailable;
      break;
  }
  return error;
}

}  // namespace

std::string ChatRequestBody(const v1::Endpoint& endpoint, const LlmRequest& request,
                            const ChatDialect& dialect) {
  nlohmann::ordered_json body;
  body["model"] = endpoint.model();
  body["messages"] = nlohmann::ordered_json::array();
  for (const v1::ChatMessage& message : request.messages) {
    if (message.content().empty()) continue;
    body["messages"].push_back(
        {{"role", ChatRoleName(message.role())}, {"content", message.content()}});
  }
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
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  } else if (dialect.temperature && absl::StrContains(text, "temperature")) {
    adapted.temperature = false;
  } else if (dialect.top_p && absl::StrContains(text, "top_p")) {
    adapted.top_p = false;
  } else if (dialect.seed && absl::StrContains(text, "seed")) {
    adapted.seed = false;
  }
  return adapted;
}

OpenAiEndpoint::OpenAiEndpoint(const v1::Endpoint& endpoint, const Clock& clock)
    : OpenAiEndpoint(endpoint, clock, Limits()) {}

OpenAiEndpoint::OpenAiEndpoint(const v1::Endpoint& endpoint, const Clock& clock,
                               const Limits& limits)
    : endpoint_(endpoint), clock_(clock), limits_(limits), http_(clock) {}

ChatDialect OpenAiEndpoint::dialect() {
  std::lock_guard lock(mutex_);
  return dialect_;
}

LlmResult OpenAiEndpoint::Complete(const LlmRequest& request, CancelToken& cancel) {
  ChatDialect used = dialect();
  for (int attempt = 1;; ++attempt) {
    LlmResult result = CallOnce(request, used, cancel);
    const LlmError* error = std::get_if<LlmError>(&result);
    bool refused = error != nullptr && error->kind == LlmError::Kind::kBadRequest;
    if (!refused || attempt >= kDialectTries) return result;
    ChatDialect adapted = AdaptDialect(used, error->message);
    if (adapted == used) return result;
    used = adapted;
    std::lock_guard lock(mutex_);
    dialect_ = used;
  }
}

LlmResult OpenAiEndpoint::CallOnce(const LlmRequest& request, const ChatDialect& dialect,
                                   CancelToken& cancel) {
  HttpCall call;
  call.url = ChatUrl(endpoint_);
  call.headers = {"Content-Type: application/json"};
  if (endpoint_.stream()) call.headers.push_back("Accept: text/event-stream");
  if (!endpoint_.api_key_env().empty()) {
    const char* key = std::getenv(endpoint_.api_key_env().c_str());
    if (key == nullptr || *key == '\0') {
      return LlmError{LlmError::Kind::kAuth,
                      absl::StrCat("the runner's environment has no variable ",
                                   endpoint_.api_key_env(), " with the key of endpoint '",
                                   endpoint_.name(), "'; set it where the runner is started")};
    }
    call.headers.push_back(absl::StrCat("Authorization: Bearer ", key));
  }
  call.body = ChatRequestBody(endpoint_, request, dialect);
  call.connect_timeout = limits_.connect;
  call.total_timeout =
      absl::Seconds(endpoint_.timeout().seconds()) + absl::Nanoseconds(endpoint_.timeout().nanos());
  if (call.total_timeout <= absl::ZeroDuration()) call.total_timeout = limits_.total;
  if (endpoint_.stream()) call.first_byte_timeout = limits_.first_byte;
  call.idle_timeout = limits_.idle;

  ChatReply chat;
  bool is_stream = false;
  bool too_large = false;
  std::string body;
  SseParser parser([&](std::string_view, std::string_view data) { chat.AddEvent(data); });
  call.on_body = [&](int status, const std::string& content_type, std::string_view piece) {
    is_stream = status == 200 && (absl::StartsWith(content_type, "text/event-stream") ||
                                  (endpoint_.stream() && content_type.empty()));
    if (!is_stream) {
      body.append(piece);
      too_large = body.size() > kMaxBodyBytes;
      return !too_large;
    }
    too_large = !parser.Feed(piece);
    return !too_large && !chat.error();
  };

  absl::Duration started = clock_.Steady();
  HttpOutcome outcome = http_.Post(call, cancel);
  double seconds = absl::ToDoubleSeconds(clock_.Steady() - started);
  if (is_stream && outcome.end == HttpOutcome::End::kDone) parser.Finish();

  if (too_large) {
    return LlmError{LlmError::Kind::kBadReply, "the answer is larger than 64 MiB"};
  }
  // A stream that is complete counts even when the connection breaks right after it.
  bool complete = is_stream && chat.complete() && !chat.error();
  if (outcome.end == HttpOutcome::End::kCancelled) return ErrorOf(outcome, call.url, false);
  if (outcome.end != HttpOutcome::End::kDone && !complete && !chat.error()) {
    return ErrorOf(outcome, call.url, outcome.status == 200);
  }
  if (outcome.status != 200) {
    LlmError error = ClassifyError(outcome.status, body);
    error.message = absl::StrCat("POST ", call.url, ": ", error.message);
    if (auto wait = ParseRetryAfter(outcome.retry_after, clock_.Wall())) error.retry_after = *wait;
    return error;
  }
  if (!is_stream) chat.AddBody(body);
  if (chat.error()) {
    LlmError error = *chat.error();
    error.message = absl::StrCat("POST ", call.url, ": ", error.message);
    return error;
  }
  if (!chat.complete()) {
    return LlmError{LlmError::Kind::kTruncatedStream,
                    absl::StrCat("POST ", call.url,
                                 ": the stream ended without a finish reason and without [DONE]")};
  }
  v1::ModelReply reply = chat.Finish(EstimateTokens(request.messages));
  reply.set_endpoint(endpoint_.name());
  if (reply.model().empty()) reply.set_model(endpoint_.model());
  reply.set_temperature(request.sampling.temperature());
  reply.set_max_tokens(request.sampling.max_tokens());
  reply.set_seconds(seconds);
  v1::Usage& usage = *reply.mutable_usage();
  usage.set_requests(1);
  usage.set_cost_usd(
      (static_cast<double>(usage.prompt_tokens()) * endpoint_.prompt_usd_per_million() +
       static_cast<double>(usage.completion_tokens()) * endpoint_.completion_usd_per_million()) /
      1e6);
  return reply;
}

}  // namespace kmosaic
