// Anthropic's messages: what is sent, and what is made of answers.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "absl/strings/match.h"
#include "agent_runner/llm/http_endpoint.h"
#include "agent_runner/llm/llm_errors.h"
#include "tests/testing/fake_chat_server.h"

using namespace kmosaic;  // NOLINT: tests
using nlohmann::json;

namespace {

const SystemClock kClock;

v1::Endpoint EndpointAt(const std::string& url, bool stream = true) {
  v1::Endpoint endpoint;
  endpoint.set_name("fake");
  endpoint.set_kind(v1::ENDPOINT_KIND_ANTHROPIC);
  endpoint.set_url(url);
  endpoint.set_model("test-model");
  endpoint.set_stream(stream);
  endpoint.set_prompt_usd_per_million(2);
  endpoint.set_cached_prompt_usd_per_million(1);
  endpoint.set_completion_usd_per_million(10);
  return endpoint;
}

v1::ChatMessage Message(v1::ChatRole role, const std::string& content) {
  v1::ChatMessage message;
  message.set_role(role);
  message.set_content(content);
  return message;
}

LlmRequest Request() {
  LlmRequest request;
  request.messages = {Message(v1::CHAT_ROLE_SYSTEM, "rules"), Message(v1::CHAT_ROLE_USER, "task")};
  request.sampling.set_max_tokens(64);
  request.sampling.set_temperature(1.5);
  request.sampling.set_seed(3);
  return request;
}

LlmResult Ask(const v1::Endpoint& endpoint, const LlmRequest& request = Request()) {
  HttpEndpoint client(endpoint, std::make_unique<AnthropicProtocol>(), kClock, {});
  CancelToken cancel;
  return client.Complete(request, cancel);
}

v1::ModelReply ReplyOf(const LlmResult& result) {
  if (const auto* error = std::get_if<LlmError>(&result)) FAIL(error->message);
  return std::get<v1::ModelReply>(result);
}

LlmError ErrorOf(const LlmResult& result) {
  REQUIRE(std::holds_alternative<LlmError>(result));
  return std::get<LlmError>(result);
}

std::string Event(const json& object) {
  return "event: " + object["type"].get<std::string>() + "\ndata: " + object.dump() + "\n\n";
}

std::string Delta(int index, const json& delta) {
  return Event({{"type", "content_block_delta"}, {"index", index}, {"delta", delta}});
}

std::string Stopped(const std::string& reason) {
  return Event({{"type", "message_delta"}, {"delta", {{"stop_reason", reason}}}});
}

}  // namespace

TEST_CASE("A reply in Anthropic's events arrives whole, also byte by byte, and is paid once") {
  const std::string kernel = "```cuda\n// \xE6\xA0\xB8 \xF0\x9F\x9A\x80 2 \xC2\xB5s\n```\n";
  ScriptedReply whole = ScriptedReply::AnthropicStream(kernel, 1000, 200);
  ScriptedReply bytes;
  for (const std::string& piece : whole.pieces) {
    for (char c : piece) bytes.pieces.emplace_back(1, c);
  }
  FakeChatServer server({whole, bytes});
  setenv("KMOSAIC_TEST_KEY", "sk-ant", 1);
  v1::Endpoint endpoint = EndpointAt(server.url());
  endpoint.set_api_key_env("KMOSAIC_TEST_KEY");
  for (int i = 0; i < 2; ++i) {
    v1::ModelReply reply = ReplyOf(Ask(endpoint));
    CHECK(reply.content() == kernel);
    CHECK(reply.finish_reason() == "stop");
    CHECK(reply.model() == "served");
    CHECK(reply.usage().prompt_tokens() == 1000);
    CHECK(reply.usage().completion_tokens() == 200);
    CHECK_FALSE(reply.usage().estimated());
    CHECK(reply.usage().cost_usd() == Approx(0.004));
  }
  unsetenv("KMOSAIC_TEST_KEY");
  CHECK(server.last_header("x-api-key") == "sk-ant");
  CHECK(server.last_header("anthropic-version") == "2023-06-01");
  CHECK(server.last_header("Authorization").empty());
  json sent = server.requests().at(0);
  CHECK(sent["system"] == "rules");
  CHECK(sent["messages"] == json::parse(R"([{"role":"user","content":"task"}])"));
  CHECK(sent["max_tokens"] == 64);
  CHECK(sent["temperature"] == 1.0);
  CHECK_FALSE(sent.contains("seed"));
}

TEST_CASE("A message that is not streamed is read, with thinking apart and cached tokens") {
  FakeChatServer server({ScriptedReply::Body(
      200, R"({"type":"message","model":"served","stop_reason":"max_tokens","content":[)"
           R"({"type":"thinking","thinking":"hmm"},{"type":"text","text":"Hi"}],)"
           R"("usage":{"input_tokens":100,"cache_read_input_tokens":50,)"
           R"("cache_creation_input_tokens":10,"output_tokens":7}})")});
  v1::ModelReply reply = ReplyOf(Ask(EndpointAt(server.url(), false)));
  CHECK(reply.content() == "Hi");
  CHECK(reply.reasoning() == "hmm");
  CHECK(reply.finish_reason() == "length");
  CHECK(reply.usage().prompt_tokens() == 160);
  CHECK(reply.usage().cached_prompt_tokens() == 50);
  CHECK(reply.usage().cost_usd() == Approx((110 * 2 + 50 * 1 + 7 * 10) / 1e6));
}

TEST_CASE("Thinking and tool calls are put together from Anthropic's deltas") {
  FakeChatServer server({ScriptedReply::Raw(
      Delta(0, {{"type", "thinking_delta"}, {"thinking", "Let me "}}) +
      Delta(0, {{"type", "thinking_delta"}, {"thinking", "see."}}) +
      Delta(0, {{"type", "signature_delta"}, {"signature", "c2ln"}}) +
      Delta(1, {{"type", "text_delta"}, {"text", "Now:"}}) +
      Event({{"type", "content_block_start"},
             {"index", 2},
             {"content_block",
              {{"type", "tool_use"},
               {"id", "toolu_1"},
               {"name", "evaluate"},
               {"input", json::object()}}}}) +
      Delta(2, {{"type", "input_json_delta"}, {"partial_json", "{\"source\": \"a\\"}}) +
      Delta(2, {{"type", "input_json_delta"}, {"partial_json", "nb\"}"}}) + Stopped("tool_use"))});
  v1::ModelReply reply = ReplyOf(Ask(EndpointAt(server.url())));
  CHECK(reply.reasoning() == "Let me see.");
  CHECK(reply.content() == "Now:");
  CHECK(reply.finish_reason() == "tool_calls");
  REQUIRE(reply.tool_calls_size() == 1);
  CHECK(reply.tool_calls(0).id() == "toolu_1");
  CHECK(reply.tool_calls(0).name() == "evaluate");
  CHECK(json::parse(reply.tool_calls(0).arguments())["source"] == "a\nb");
}

TEST_CASE("Tools and their answers are sent in Anthropic's form") {
  FakeChatServer server({ScriptedReply::AnthropicStream("Done.")});
  LlmRequest request = Request();
  request.tools = {{"evaluate", "Judges it.", R"({"type":"object"})"}};
  v1::ChatMessage call = Message(v1::CHAT_ROLE_ASSISTANT, "");
  v1::ToolCall& made = *call.add_tool_calls();
  made.set_id("toolu_1");
  made.set_name("evaluate");
  made.set_arguments(R"({"source":"x"})");
  v1::ChatMessage answer = Message(v1::CHAT_ROLE_TOOL, "It is wrong.");
  answer.set_tool_call_id("toolu_1");
  request.messages.push_back(call);
  request.messages.push_back(answer);
  ReplyOf(Ask(EndpointAt(server.url()), request));
  json sent = server.requests().at(0);
  CHECK(sent["tools"] == json::parse(R"([{"name":"evaluate","description":"Judges it.",)"
                                     R"("input_schema":{"type":"object"}}])"));
  CHECK(sent["tool_choice"]["disable_parallel_tool_use"] == true);
  CHECK(sent["messages"][1]["content"] ==
        json::parse(R"([{"type":"tool_use","id":"toolu_1","name":"evaluate",)"
                    R"("input":{"source":"x"}}])"));
  CHECK(sent["messages"][2] ==
        json::parse(R"({"role":"user","content":[{"type":"tool_result",)"
                    R"("tool_use_id":"toolu_1","content":"It is wrong."}]})"));
}

TEST_CASE("Anthropic's errors have their kinds, as statuses and inside a stream") {
  const std::string overloaded =
      R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})";
  ScriptedReply limited = ScriptedReply::Body(
      429, R"({"type":"error","error":{"type":"rate_limit_error","message":"slow"}})");
  limited.headers["Retry-After"] = "7";
  FakeChatServer server({ScriptedReply::Body(529, overloaded), limited,
                         ScriptedReply::Raw(Delta(0, {{"type", "text_delta"}, {"text", "half"}}) +
                                            "event: error\ndata: " + overloaded + "\n\n"),
                         ScriptedReply::Raw(Delta(0, {{"type", "text_delta"}, {"text", "half"}})),
                         ScriptedReply::Body(200, "<html>Welcome</html>", "text/html")});
  v1::Endpoint endpoint = EndpointAt(server.url());
  CHECK(ErrorOf(Ask(endpoint)).kind == LlmError::Kind::kUnavailable);
  LlmError waits = ErrorOf(Ask(endpoint));
  CHECK(waits.kind == LlmError::Kind::kRateLimited);
  CHECK(waits.retry_after == absl::Seconds(7));
  LlmError inside = ErrorOf(Ask(endpoint));
  CHECK(inside.kind == LlmError::Kind::kUnavailable);
  CHECK(absl::StrContains(inside.message, "Overloaded"));
  CHECK(ErrorOf(Ask(endpoint)).kind == LlmError::Kind::kTruncatedStream);
  CHECK(ErrorOf(Ask(endpoint)).kind == LlmError::Kind::kBadReply);
}

TEST_CASE("A stop reason without message_stop is accepted") {
  FakeChatServer server({ScriptedReply::Raw(Delta(0, {{"type", "text_delta"}, {"text", "Hi"}}) +
                                            Stopped("end_turn"))});
  CHECK(ReplyOf(Ask(EndpointAt(server.url()))).content() == "Hi");
}

TEST_CASE("An overflow that counts prompt and reply together names the window") {
  LlmError error = ClassifyError(
      400,
      R"({"type":"error","error":{"type":"invalid_request_error","message":"input length and )"
      R"(`max_tokens` exceed context limit: 197000 + 8192 > 200000, decrease input length"}})");
  CHECK(error.kind == LlmError::Kind::kContextOverflow);
  CHECK(error.window_tokens == 200000);
}
