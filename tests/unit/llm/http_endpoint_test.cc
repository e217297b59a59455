#include "agent_runner/llm/http_endpoint.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <thread>

#include "absl/strings/match.h"
#include "tests/testing/fake_chat_server.h"
#include "tests/testing/raw_http_server.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

const SystemClock kClock;

v1::Endpoint EndpointAt(const std::string& url, bool stream = true) {
  v1::Endpoint endpoint;
  endpoint.set_name("fake");
  endpoint.set_kind(v1::ENDPOINT_KIND_OPENAI);
  endpoint.set_url(url);
  endpoint.set_model("test-model");
  endpoint.set_stream(stream);
  endpoint.set_prompt_usd_per_million(2);
  endpoint.set_completion_usd_per_million(10);
  return endpoint;
}

LlmRequest Request(const std::string& text = "hello") {
  LlmRequest request;
  v1::ChatMessage message;
  message.set_role(v1::CHAT_ROLE_USER);
  message.set_content(text);
  request.messages.push_back(message);
  request.sampling.set_max_tokens(64);
  request.sampling.set_temperature(0.25);
  return request;
}

HttpEndpoint OpenAi(const v1::Endpoint& endpoint, const HttpEndpoint::Options& options = {}) {
  return {endpoint, std::make_unique<OpenAiProtocol>(), kClock, options};
}

LlmResult Ask(const v1::Endpoint& endpoint, const HttpEndpoint::Options& options = {}) {
  HttpEndpoint client = OpenAi(endpoint, options);
  CancelToken cancel;
  return client.Complete(Request(), cancel);
}

LlmError ErrorOf(const LlmResult& result) {
  REQUIRE(std::holds_alternative<LlmError>(result));
  return std::get<LlmError>(result);
}

v1::ModelReply ReplyOf(const LlmResult& result) {
  if (const auto* error = std::get_if<LlmError>(&result)) FAIL(error->message);
  return std::get<v1::ModelReply>(result);
}

// A kernel with characters of two, three and four bytes.
const char kKernel[] =
    "```cuda\n// \xE6\xA0\xB8\xE5\xBF\x83 \xF0\x9F\x9A\x80 2 \xC2\xB5s\nint x;\r\n```\n";

}  // namespace

TEST_CASE("A streamed reply arrives whole, with usage and cost counted once") {
  FakeChatServer server({ScriptedReply::Stream(kKernel, 1000, 200)});
  v1::ModelReply reply = ReplyOf(Ask(EndpointAt(server.url())));
  CHECK(reply.content() == kKernel);
  CHECK(reply.finish_reason() == "stop");
  CHECK(reply.endpoint() == "fake");
  CHECK(reply.model() == "test-model");
  CHECK(reply.max_tokens() == 64);
  CHECK(reply.usage().requests() == 1);
  CHECK(reply.usage().prompt_tokens() == 1000);
  CHECK(reply.usage().completion_tokens() == 200);
  CHECK(reply.usage().cost_usd() == Approx(0.004));
  auto sent = server.requests().at(0);
  CHECK(sent["stream"] == true);
  CHECK(sent["stream_options"]["include_usage"] == true);
  CHECK(sent["max_tokens"] == 64);
}

TEST_CASE("Characters that are split between network writes arrive byte for byte") {
  ScriptedReply whole = ScriptedReply::Stream(kKernel);
  ScriptedReply bytes;
  for (const std::string& piece : whole.pieces) {
    for (char c : piece) bytes.pieces.emplace_back(1, c);
  }
  FakeChatServer server({bytes});
  CHECK(ReplyOf(Ask(EndpointAt(server.url()))).content() == kKernel);
}

TEST_CASE("A reply that is not streamed is read, also from a server that ignores stream") {
  const std::string body =
      R"({"model":"served","choices":[{"message":{"role":"assistant","content":"Hi",)"
      R"("reasoning_content":"hmm"},"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":4}})";
  for (bool stream : {false, true}) {
    FakeChatServer server({ScriptedReply::Body(200, body)});
    v1::ModelReply reply = ReplyOf(Ask(EndpointAt(server.url(), stream)));
    CHECK(reply.content() == "Hi");
    CHECK(reply.reasoning() == "hmm");
    CHECK(reply.model() == "served");
    CHECK(reply.usage().completion_tokens() == 4);
    CHECK(server.requests().at(0).contains("stream_options") == stream);
  }
}

TEST_CASE("An empty answer beside reasoning stays empty and is not taken from the reasoning") {
  FakeChatServer server({ScriptedReply::Raw(
      "data: {\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":\"```python\\n"
      "class ModelNew: pass\\n```\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"length\"}]}\n\n"
      "data: [DONE]\n\n")});
  v1::ModelReply reply = ReplyOf(Ask(EndpointAt(server.url())));
  CHECK(reply.content().empty());
  CHECK(reply.finish_reason() == "length");
  CHECK(absl::StrContains(reply.reasoning(), "ModelNew"));
  CHECK(reply.usage().estimated());
  CHECK(reply.usage().completion_tokens() > 0);
}

TEST_CASE("A stream that stops without an end is truncated, however it stops") {
  const std::string half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
  SECTION("an orderly end") {
    FakeChatServer server({ScriptedReply::Raw(half)});
    CHECK(ErrorOf(Ask(EndpointAt(server.url()))).kind == LlmError::Kind::kTruncatedStream);
  }
  SECTION("the connection breaks") {
    ScriptedReply reply = ScriptedReply::Raw(half);
    reply.break_off = true;
    FakeChatServer server({reply});
    CHECK(ErrorOf(Ask(EndpointAt(server.url()))).kind == LlmError::Kind::kTruncatedStream);
  }
}

TEST_CASE("A finish reason without [DONE] is accepted, and pings are skipped") {
  ScriptedReply reply = ScriptedReply::Raw(
      ": ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n: ping\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
  SECTION("an orderly end") {}
  SECTION("the connection breaks after it") { reply.break_off = true; }
  FakeChatServer server({reply});
  CHECK(ReplyOf(Ask(EndpointAt(server.url()))).content() == "Hi");
}

TEST_CASE("Usage beside the finish reason counts, in a stream without [DONE]") {
  // As `transformers serve` 5.24 sends it.
  ScriptedReply reply = ScriptedReply::Raw(
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"index\":0}],"
      "\"model\":\"served\"}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"index\":0}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"index\":0,\"finish_reason\":\"length\"}],"
      "\"usage\":{\"completion_tokens\":5,\"prompt_tokens\":33,\"total_tokens\":38}}\n\n");
  reply.content_type = "text/event-stream; charset=utf-8";
  FakeChatServer server({reply});
  v1::ModelReply got = ReplyOf(Ask(EndpointAt(server.url())));
  CHECK(got.content() == "Hi");
  CHECK(got.finish_reason() == "length");
  CHECK(got.model() == "served");
  CHECK(got.usage().prompt_tokens() == 33);
  CHECK(got.usage().completion_tokens() == 5);
  CHECK_FALSE(got.usage().estimated());
}

TEST_CASE("An error inside a 200 stream is an error, first or in the middle") {
  const std::string error =
      "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"try later\"}}\n\n";
  const std::string half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
  for (const std::string& body : {error, half + error}) {
    FakeChatServer server({ScriptedReply::Raw(body)});
    LlmError found = ErrorOf(Ask(EndpointAt(server.url())));
    CHECK(found.kind == LlmError::Kind::kUnavailable);
    CHECK(absl::StrContains(found.message, "try later"));
  }
}

TEST_CASE("A refusal for good inside a stream is not tried again as if it were cut") {
  FakeChatServer server({ScriptedReply::Raw(
      "data: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no such tool\"}}\n\n")});
  LlmError error = ErrorOf(Ask(EndpointAt(server.url())));
  CHECK(error.kind == LlmError::Kind::kBadRequest);
  CHECK_FALSE(IsRetryable(error.kind));
}

TEST_CASE("A page instead of a completion is a bad reply that shows how it begins") {
  FakeChatServer server({ScriptedReply::Body(200, "<html>Welcome</html>", "text/html")});
  LlmError error = ErrorOf(Ask(EndpointAt(server.url())));
  CHECK(error.kind == LlmError::Kind::kBadReply);
  CHECK(absl::StrContains(error.message, "<html>Welcome"));
}

TEST_CASE("Retry-After is honoured in both forms with 429 and 503, and garbage is not") {
  const std::string past = "Sun, 06 Nov 1994 08:49:37 GMT";
  const std::string ahead = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                                             kClock.Wall() + absl::Hours(2), absl::UTCTimeZone());
  struct Case {
    std::string header;
    absl::Duration least;
    absl::Duration most;
  };
  const Case cases[] = {{"2", absl::Seconds(2), absl::Seconds(2)},
                        {"1.5", absl::Seconds(1.5), absl::Seconds(1.5)},
                        {"999999", absl::Seconds(999999), absl::Seconds(999999)},
                        {ahead, absl::Minutes(100), absl::Hours(2)},
                        {past, absl::ZeroDuration(), absl::ZeroDuration()},
                        {"0", absl::ZeroDuration(), absl::ZeroDuration()},
                        {"-1", absl::ZeroDuration(), absl::ZeroDuration()},
                        {"soon", absl::ZeroDuration(), absl::ZeroDuration()},
                        {"", absl::ZeroDuration(), absl::ZeroDuration()}};
  std::vector<ScriptedReply> replies;
  for (int status : {429, 503}) {
    for (const Case& one : cases) {
      replies.push_back(ScriptedReply::Body(status, R"({"error":{"message":"slow down"}})"));
      if (!one.header.empty()) replies.back().headers["Retry-After"] = one.header;
    }
  }
  FakeChatServer server(replies);
  for (int status : {429, 503}) {
    for (const Case& one : cases) {
      INFO(status << " " << one.header);
      LlmError error = ErrorOf(Ask(EndpointAt(server.url())));
      CHECK(error.retry_after >= one.least);
      CHECK(error.retry_after <= one.most);
      CHECK(error.http_status == status);
      CHECK(IsRetryable(error.kind));
    }
  }
}

TEST_CASE("A refused parameter is replaced at once and remembered") {
  FakeChatServer server([](const nlohmann::json& request) {
    if (request.contains("max_tokens")) {
      return ScriptedReply::Body(
          400,
          R"({"error":{"message":"'max_tokens' is not supported, use 'max_completion_tokens'"}})");
    }
    if (request.contains("temperature")) {
      return ScriptedReply::Body(400,
                                 R"({"error":{"message":"Unsupported value: 'temperature'"}})");
    }
    return ScriptedReply::Stream("Hi");
  });
  HttpEndpoint client = OpenAi(EndpointAt(server.url()));
  CancelToken cancel;
  CHECK(ReplyOf(client.Complete(Request(), cancel)).content() == "Hi");
  CHECK(server.requests().size() == 3);
  CHECK(ReplyOf(client.Complete(Request(), cancel)).content() == "Hi");
  CHECK(server.requests().size() == 4);
  CHECK(server.requests().at(3)["max_completion_tokens"] == 64);
}

TEST_CASE("A server that knows max_tokens only is understood too, from any start") {
  FakeChatServer server([](const nlohmann::json& request) {
    if (request.contains("max_completion_tokens")) {
      return ScriptedReply::Body(400, R"({"detail":"extra field max_completion_tokens"})");
    }
    return ScriptedReply::Stream("Hi");
  });
  v1::Endpoint endpoint = EndpointAt(server.url());
  endpoint.mutable_dialect()->set_max_completion_tokens(true);
  CHECK(ReplyOf(Ask(endpoint)).content() == "Hi");
  CHECK(server.requests().size() == 2);
}

TEST_CASE("An endpoint's profile decides what is sent, without a refusal") {
  FakeChatServer server([](const nlohmann::json&) { return ScriptedReply::Stream("Hi"); });
  v1::Endpoint endpoint = EndpointAt(server.url());
  endpoint.mutable_dialect()->set_max_completion_tokens(true);
  for (const char* parameter : {"temperature", "stream_options"}) {
    endpoint.mutable_dialect()->add_omit(parameter);
  }
  endpoint.mutable_dialect()->set_extra(R"({"reasoning_effort":"low","model":"other"})");
  ReplyOf(Ask(endpoint));
  auto sent = server.requests().at(0);
  CHECK(sent["max_completion_tokens"] == 64);
  CHECK_FALSE(sent.contains("max_tokens"));
  CHECK_FALSE(sent.contains("temperature"));
  CHECK_FALSE(sent.contains("stream_options"));
  CHECK(sent["reasoning_effort"] == "low");
  CHECK(sent["model"] == "other");
}

TEST_CASE("A request that is refused for good is sent once and shows the server's words") {
  FakeChatServer server({ScriptedReply::Body(400, R"({"error":{"message":"model m not found"}})")});
  LlmError error = ErrorOf(Ask(EndpointAt(server.url())));
  CHECK(error.kind == LlmError::Kind::kBadRequest);
  CHECK(absl::StrContains(error.message, "model m not found"));
  CHECK(server.requests().size() == 1);
}

TEST_CASE("The key goes into the header and, whatever the server says, nowhere else") {
  const std::string key = "sk-canary-5e1f";
  const std::string shown = "you sent " + key;
  ScriptedReply refusal =
      ScriptedReply::Body(401, nlohmann::json({{"error", {{"message", shown}}}}).dump());
  refusal.headers["X-Request-Id"] = "for-" + key;
  FakeChatServer server({refusal, ScriptedReply::Stream(shown, 10, 20, 1000)});
  v1::Endpoint endpoint = EndpointAt(server.url());
  endpoint.set_api_key_env("KMOSAIC_TEST_KEY");
  setenv("KMOSAIC_TEST_KEY", (key + "\n").c_str(), 1);
  LlmError error = ErrorOf(Ask(endpoint));
  v1::ModelReply reply = ReplyOf(Ask(endpoint));
  unsetenv("KMOSAIC_TEST_KEY");
  CHECK(server.last_header("Authorization") == "Bearer " + key);
  CHECK(error.kind == LlmError::Kind::kAuth);
  CHECK(absl::StrContains(error.message, "you sent [key]"));
  CHECK_FALSE(absl::StrContains(error.message, key));
  CHECK_FALSE(absl::StrContains(reply.ShortDebugString(), key));
  CHECK_FALSE(absl::StrContains(server.requests().at(0).dump(), key));
}

TEST_CASE("A key comes from a folder, where it may be exchanged, or from the environment") {
  TempDir folder;
  v1::Endpoint endpoint = EndpointAt("");
  endpoint.set_api_key_env("KMOSAIC_TEST_KEY");
  HttpEndpoint::Options options;
  options.api_key_dir = folder.path();
  SECTION("folder") {
    FakeChatServer server([](const nlohmann::json&) { return ScriptedReply::Stream("Hi"); });
    endpoint.set_url(server.url());
    HttpEndpoint client = OpenAi(endpoint, options);
    CancelToken cancel;
    for (const char* key : {"first", "second"}) {
      std::ofstream(folder.path() + "/KMOSAIC_TEST_KEY") << key << "\n";
      ReplyOf(client.Complete(Request(), cancel));
      CHECK(server.last_header("Authorization") == std::string("Bearer ") + key);
    }
  }
  SECTION("nowhere") {
    LlmError error = ErrorOf(Ask(endpoint, options));
    CHECK(error.kind == LlmError::Kind::kAuth);
    CHECK(absl::StrContains(error.message, "KMOSAIC_TEST_KEY"));
    CHECK(absl::StrContains(error.message, folder.path()));
  }
  SECTION("a name that leads out of the folder") {
    endpoint.set_api_key_env("../KMOSAIC_TEST_KEY");
    CHECK(ErrorOf(Ask(endpoint, options)).kind == LlmError::Kind::kAuth);
  }
}

TEST_CASE("Each call has an id of its own, which the server, the reply and errors name") {
  ScriptedReply refusal = ScriptedReply::Body(503, "busy");
  refusal.headers["X-Request-Id"] = "theirs-1";
  FakeChatServer server({ScriptedReply::Stream("Hi"), refusal});
  HttpEndpoint client = OpenAi(EndpointAt(server.url()));
  CancelToken cancel;
  std::string id = ReplyOf(client.Complete(Request(), cancel)).request_id();
  CHECK_FALSE(id.empty());
  CHECK(server.last_header("X-Request-Id") == id);
  LlmError error = ErrorOf(client.Complete(Request(), cancel));
  CHECK(server.last_header("X-Request-Id") != id);
  CHECK(absl::StrContains(error.message, server.last_header("X-Request-Id")));
  CHECK(absl::StrContains(error.message, "theirs-1"));
}

TEST_CASE("Cached prompt tokens have a price of their own") {
  v1::Endpoint endpoint = EndpointAt("");
  v1::Usage usage;
  usage.set_prompt_tokens(1'000'000);
  usage.set_cached_prompt_tokens(400'000);
  usage.set_completion_tokens(100'000);
  CHECK(CostOf(endpoint, usage) == Approx(3));  // 2 + 1
  endpoint.set_cached_prompt_usd_per_million(0.5);
  CHECK(CostOf(endpoint, usage) == Approx(0.6 * 2 + 0.4 * 0.5 + 1));
}

TEST_CASE("Calls go through a proxy where one is set, except to hosts that are excepted") {
  const std::string body = R"({"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]})";
  RawHttpServer server({RawHttpServer::Answer(body)});
  HttpEndpoint::Options options;
  SECTION("through it") {
    options.http.proxy = server.url();
    v1::Endpoint endpoint = EndpointAt("http://llm.invalid/v1", false);
    CHECK(ReplyOf(Ask(endpoint, options)).content() == "Hi");
    CHECK(absl::StartsWith(server.last_head(), "POST http://llm.invalid/v1/chat/completions "));
  }
  SECTION("past it") {
    options.http.proxy = "http://127.0.0.1:1";
    options.http.no_proxy = "localhost,127.0.0.1";
    CHECK(ReplyOf(Ask(EndpointAt(server.url() + "/v1", false), options)).content() == "Hi");
    CHECK(absl::StartsWith(server.last_head(), "POST /v1/chat/completions "));
  }
}

TEST_CASE("A server is believed when an authority that is trusted has signed it") {
  FakeChatServer server(FakeChatServer::Tls(), {ScriptedReply::Stream("Hi")});
  TempDir folder;
  HttpEndpoint::Options options;
  SECTION("trusted") {
    options.http.ca_file = folder.path() + "/ca.pem";
    std::ofstream(options.http.ca_file) << kTestAuthority;
    CHECK(ReplyOf(Ask(EndpointAt(server.url()), options)).content() == "Hi");
  }
  SECTION("unknown") {
    LlmError error = ErrorOf(Ask(EndpointAt(server.url()), options));
    CHECK(error.kind == LlmError::Kind::kUnavailable);
    CHECK(absl::StrContains(error.message, "certificate"));
    CHECK(server.requests().empty());
  }
}

TEST_CASE("An endpoint that is not there is unavailable, with its address") {
  LlmError error = ErrorOf(Ask(EndpointAt("http://127.0.0.1:1/v1")));
  CHECK(error.kind == LlmError::Kind::kUnavailable);
  CHECK(absl::StrContains(error.message, "127.0.0.1:1"));
}

TEST_CASE("Waiting has limits: to the first byte, between bytes, in all") {
  std::latch released(1);
  HttpEndpoint::Options limits;
  v1::Endpoint endpoint = EndpointAt("");
  std::string expected;
  ScriptedReply reply =
      ScriptedReply::Raw("data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n");
  SECTION("first byte") {
    reply.before = [&] { released.wait(); };
    limits.first_byte = absl::Milliseconds(50);
    expected = "no answer within";
  }
  SECTION("idle") {
    reply.after_pieces = [&] { released.wait(); };
    limits.idle = absl::Milliseconds(50);
    expected = "in the middle";
  }
  SECTION("total") {
    reply.before = [&] { released.wait(); };
    endpoint.mutable_timeout()->set_nanos(50'000'000);
    expected = "no complete answer";
  }
  FakeChatServer server({reply});
  endpoint.set_url(server.url());
  LlmError error = ErrorOf(Ask(endpoint, limits));
  released.count_down();
  CHECK(error.kind == LlmError::Kind::kTimeout);
  CHECK(absl::StrContains(error.message, expected));
}

TEST_CASE("An endpoint's own limits of waiting count") {
  std::latch released(1);
  ScriptedReply reply;
  reply.before = [&] { released.wait(); };
  FakeChatServer server({reply});
  v1::Endpoint endpoint = EndpointAt(server.url(), false);
  endpoint.mutable_first_byte_timeout()->set_nanos(50'000'000);
  LlmError error = ErrorOf(Ask(endpoint));
  released.count_down();
  CHECK(error.kind == LlmError::Kind::kTimeout);
  CHECK(absl::StrContains(error.message, "no answer within 50ms"));
}

TEST_CASE("Giving up closes the connection, so that the server need not go on") {
  RawHttpServer server({{"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: ping\n\n"}});
  HttpEndpoint::Options options;
  options.idle = absl::Milliseconds(50);
  HttpEndpoint client = OpenAi(EndpointAt(server.url()), options);
  CancelToken cancel;
  CHECK(ErrorOf(client.Complete(Request(), cancel)).kind == LlmError::Kind::kTimeout);
  server.WaitForClose();
}

TEST_CASE("An answer that breaks off before its first byte was not paid for") {
  RawHttpServer server({RawHttpServer::Close()});
  LlmError error = ErrorOf(Ask(EndpointAt(server.url())));
  CHECK(error.kind == LlmError::Kind::kUnavailable);
}

TEST_CASE("A call in flight is called off") {
  std::latch called(1);
  std::latch released(1);
  ScriptedReply reply;
  reply.before = [&] {
    called.count_down();
    released.wait();
  };
  FakeChatServer server({reply});
  HttpEndpoint client = OpenAi(EndpointAt(server.url()));
  CancelToken cancel;
  std::thread canceller([&] {
    called.wait();
    cancel.Cancel();
  });
  LlmResult result = client.Complete(Request(), cancel);
  canceller.join();
  released.count_down();
  CHECK(ErrorOf(result).kind == LlmError::Kind::kCancelled);
}

TEST_CASE("A kept connection that the server has closed costs nothing but a new one") {
  // Answers the first request and keeps the connection; closes it, without a byte, when
  // the second request arrives on it; answers the third, which comes on a new one.
  const std::string body = R"({"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]})";
  RawHttpServer server(
      {RawHttpServer::Answer(body), RawHttpServer::Close(), RawHttpServer::Answer(body)});
  HttpEndpoint client = OpenAi(EndpointAt(server.url() + "/v1", false));
  CancelToken cancel;
  CHECK(ReplyOf(client.Complete(Request(), cancel)).content() == "Hi");
  CHECK(ReplyOf(client.Complete(Request(), cancel)).content() == "Hi");
  CHECK(server.connections() == 2);
  CHECK(server.requests() == 3);
}
