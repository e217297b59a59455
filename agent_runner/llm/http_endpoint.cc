#include "agent_runner/llm/http_endpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent_runner/llm/llm_errors.h"
#include "agent_runner/llm/retry_after.h"
#include "agent_runner/llm/sse_parser.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/ids.h"

namespace kmosaic {
namespace {

constexpr int kDialectTries = 6;
constexpr size_t kMaxBodyBytes = 64 * 1024 * 1024;

absl::Duration DurationOr(bool stated, const google::protobuf::Duration& wire,
                          absl::Duration otherwise) {
  absl::Duration value = absl::Seconds(wire.seconds()) + absl::Nanoseconds(wire.nanos());
  return stated && value > absl::ZeroDuration() ? value : otherwise;
}

LlmError::Kind KindOf(const HttpOutcome& outcome) {
  switch (outcome.end) {
    case HttpOutcome::End::kCancelled:
      return LlmError::Kind::kCancelled;
    case HttpOutcome::End::kTimeout:
      return LlmError::Kind::kTimeout;
    case HttpOutcome::End::kBroken:
      // After the answer has begun the server has worked, and may want to be paid.
      return outcome.status == 200 ? LlmError::Kind::kTruncatedStream
                                   : LlmError::Kind::kUnavailable;
    default:
      return LlmError::Kind::kUnavailable;
  }
}

// What came of one call, before it is a reply or an error.
struct Received {
  std::unique_ptr<ChatReply> chat;
  HttpOutcome outcome;
  bool is_stream = false;
  bool too_large = false;
  std::string body;
};

std::optional<LlmError> ErrorIn(Received& received, const Clock& clock) {
  const HttpOutcome& outcome = received.outcome;
  if (received.too_large) {
    return LlmError{LlmError::Kind::kBadReply, "the answer is larger than 64 MiB"};
  }
  // A stream that is complete counts even when the connection breaks right after it.
  bool complete = received.is_stream && received.chat->complete() && !received.chat->error();
  bool broken = outcome.end == HttpOutcome::End::kCancelled ||
                (outcome.end != HttpOutcome::End::kDone && !complete && !received.chat->error());
  if (broken) {
    LlmError error{KindOf(outcome), outcome.message};
    error.http_status = outcome.status;
    return error;
  }
  if (outcome.status != 200) {
    LlmError error = ClassifyError(outcome.status, received.body);
    if (auto wait = ParseRetryAfter(outcome.retry_after, clock.Wall())) error.retry_after = *wait;
    return error;
  }
  if (!received.is_stream) received.chat->AddBody(received.body);
  if (received.chat->error()) return received.chat->error();
  if (!received.chat->complete()) {
    return LlmError{LlmError::Kind::kTruncatedStream,
                    "the stream ended without a finish reason and without its end mark"};
  }
  return std::nullopt;
}

}  // namespace

double CostOf(const v1::Endpoint& endpoint, const v1::Usage& usage) {
  uint64_t cached = std::min(usage.cached_prompt_tokens(), usage.prompt_tokens());
  double cached_price = endpoint.cached_prompt_usd_per_million() > 0
                            ? endpoint.cached_prompt_usd_per_million()
                            : endpoint.prompt_usd_per_million();
  return (static_cast<double>(usage.prompt_tokens() - cached) * endpoint.prompt_usd_per_million() +
          static_cast<double>(cached) * cached_price +
          static_cast<double>(usage.completion_tokens()) * endpoint.completion_usd_per_million()) /
         1e6;
}

HttpEndpoint::HttpEndpoint(const v1::Endpoint& endpoint, std::unique_ptr<ChatProtocol> protocol,
                           const Clock& clock, Options options)
    : endpoint_(endpoint),
      protocol_(std::move(protocol)),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.api_key_dir),
      http_(clock, options_.http),
      dialect_(DialectOf(endpoint.dialect())) {}

ChatDialect HttpEndpoint::dialect() {
  std::lock_guard lock(mutex_);
  return dialect_;
}

LlmResult HttpEndpoint::Complete(const LlmRequest& request, CancelToken& cancel) {
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

HttpCall HttpEndpoint::CallTo(const LlmRequest& request, const ChatDialect& dialect,
                              const std::string& key, const std::string& request_id) const {
  HttpCall call;
  call.url = absl::StrCat(absl::StripSuffix(endpoint_.url(), "/"), protocol_->Path());
  call.headers = protocol_->Headers(key);
  call.headers.push_back("Content-Type: application/json");
  call.headers.push_back(absl::StrCat("X-Request-Id: ", request_id));
  if (endpoint_.stream()) call.headers.push_back("Accept: text/event-stream");
  call.body = protocol_->Body(endpoint_, request, dialect);
  call.connect_timeout =
      DurationOr(endpoint_.has_connect_timeout(), endpoint_.connect_timeout(), options_.connect);
  call.total_timeout = DurationOr(endpoint_.has_timeout(), endpoint_.timeout(), options_.total);
  call.idle_timeout =
      DurationOr(endpoint_.has_idle_timeout(), endpoint_.idle_timeout(), options_.idle);
  bool limited = endpoint_.stream() || endpoint_.has_first_byte_timeout();
  if (limited) {
    call.first_byte_timeout = DurationOr(endpoint_.has_first_byte_timeout(),
                                         endpoint_.first_byte_timeout(), options_.first_byte);
  }
  return call;
}

LlmResult HttpEndpoint::CallOnce(const LlmRequest& request, const ChatDialect& dialect,
                                 CancelToken& cancel) {
  std::string key;
  if (!endpoint_.api_key_env().empty()) {
    absl::StatusOr<std::string> found = keys_.Get(endpoint_.api_key_env());
    if (!found.ok()) {
      return LlmError{LlmError::Kind::kAuth, absl::StrCat("endpoint '", endpoint_.name(),
                                                          "': ", found.status().message())};
    }
    key = *std::move(found);
  }
  const std::string request_id = RandomId("req");
  HttpCall call = CallTo(request, dialect, key, request_id);

  Received received;
  received.chat = protocol_->NewReply();
  SseParser parser([&](std::string_view, std::string_view data) { received.chat->AddEvent(data); });
  call.on_body = [&](int status, const std::string& content_type, std::string_view piece) {
    received.is_stream = status == 200 && (absl::StartsWith(content_type, "text/event-stream") ||
                                           (endpoint_.stream() && content_type.empty()));
    if (received.is_stream) {
      received.too_large = !parser.Feed(piece);
    } else {
      received.body.append(piece);
      received.too_large = received.body.size() > kMaxBodyBytes;
    }
    return !received.too_large && !received.chat->error();
  };
  absl::Duration started = clock_.Steady();
  received.outcome = http_.Post(call, cancel);
  double seconds = absl::ToDoubleSeconds(clock_.Steady() - started);
  if (received.is_stream && received.outcome.end == HttpOutcome::End::kDone) parser.Finish();

  if (std::optional<LlmError> error = ErrorIn(received, clock_)) {
    const std::string& theirs = received.outcome.request_id;
    error->message =
        WithoutKey(absl::StrCat("POST ", call.url, " (request ", request_id,
                                theirs.empty() ? "" : absl::StrCat(", at the server ", theirs),
                                "): ", error->message),
                   key);
    return *std::move(error);
  }
  v1::ModelReply reply = Finished(*received.chat, request, key);
  reply.set_request_id(request_id);
  reply.set_seconds(seconds);
  return reply;
}

v1::ModelReply HttpEndpoint::Finished(const ChatReply& chat, const LlmRequest& request,
                                      const std::string& key) const {
  v1::ModelReply reply = chat.Finish(EstimateTokens(request.messages));
  // A server that shows the key is no reason to store it.
  reply.set_content(WithoutKey(reply.content(), key));
  reply.set_reasoning(WithoutKey(reply.reasoning(), key));
  reply.set_model(WithoutKey(reply.model(), key));
  for (v1::ToolCall& call : *reply.mutable_tool_calls()) {
    call.set_arguments(WithoutKey(call.arguments(), key));
  }
  reply.set_endpoint(endpoint_.name());
  if (reply.model().empty()) reply.set_model(endpoint_.model());
  reply.set_temperature(request.sampling.temperature());
  reply.set_max_tokens(request.sampling.max_tokens());
  reply.mutable_usage()->set_requests(1);
  reply.mutable_usage()->set_cost_usd(CostOf(endpoint_, reply.usage()));
  return reply;
}

}  // namespace kmosaic
