#include "agent_runner/llm/replay_endpoint.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

std::unique_ptr<ReplayEndpoint> Make(const std::string& recordings) {
  v1::Endpoint endpoint;
  endpoint.set_name("replay");
  endpoint.set_recordings(recordings);
  auto made = ReplayEndpoint::Make(endpoint);
  if (!made.ok()) FAIL(made.status());
  return *std::move(made);
}

std::string ErrorOf(const std::string& recordings) {
  v1::Endpoint endpoint;
  endpoint.set_recordings(recordings);
  auto made = ReplayEndpoint::Make(endpoint);
  REQUIRE(absl::IsInvalidArgument(made.status()));
  return std::string(made.status().message());
}

LlmRequest Request(const std::string& task, uint32_t turn, std::vector<v1::View> views = {},
                   uint32_t sample = 0) {
  LlmRequest request;
  request.task = task;
  request.turn = turn;
  for (v1::View view : views) request.views.add_views(view);
  request.sample = sample;
  return request;
}

std::string Content(ReplayEndpoint& endpoint, const LlmRequest& request) {
  CancelToken cancel;
  LlmResult result = endpoint.Complete(request, cancel);
  if (const auto* error = std::get_if<LlmError>(&result)) return LlmErrorName(error->kind);
  return std::get<v1::ModelReply>(result).content();
}

}  // namespace

TEST_CASE("A recording answers by task and turn, and ends") {
  auto endpoint = Make(
      "{\"task\": \"a\", \"turn\": 0, \"content\": \"first\"}\n\n"
      "{\"task\": \"a\", \"turn\": 1, \"content\": \"second\", \"note\": \"n\"}\n"
      "{\"task\": \"b\", \"turn\": 0, \"content\": \"other\"}\n");
  CHECK(Content(*endpoint, Request("a", 0)) == "first");
  CHECK(Content(*endpoint, Request("a", 1)) == "second");
  CHECK(Content(*endpoint, Request("b", 0)) == "other");
  CHECK(Content(*endpoint, Request("a", 2)) == "recording_ended");
  CHECK(Content(*endpoint, Request("c", 0)) == "recording_ended");
}

TEST_CASE("The first line that fits views and sample answers") {
  auto endpoint =
      Make(R"({"task": "a", "turn": 0, "views": ["spec", "description"], "content": "both"})"
           "\n"
           R"({"task": "a", "turn": 0, "sample": 1, "content": "second sample"})"
           "\n"
           R"({"task": "a", "turn": 0, "content": "any"})"
           "\n");
  CHECK(Content(*endpoint, Request("a", 0, {v1::VIEW_DESCRIPTION, v1::VIEW_SPEC})) == "both");
  CHECK(Content(*endpoint, Request("a", 0, {v1::VIEW_SPEC}, 1)) == "second sample");
  CHECK(Content(*endpoint, Request("a", 0, {v1::VIEW_SPEC}, 0)) == "any");
}

TEST_CASE("Recorded tokens are estimates and cost nothing; thinking is taken apart") {
  auto endpoint = Make(R"({"task": "a", "turn": 0, "content": "<think>hm</think>answer"})");
  CancelToken cancel;
  auto reply = std::get<v1::ModelReply>(endpoint->Complete(Request("a", 0), cancel));
  CHECK(reply.content() == "answer");
  CHECK(reply.reasoning() == "hm");
  CHECK(reply.usage().estimated());
  CHECK(reply.usage().completion_tokens() > 0);
  CHECK(reply.usage().cost_usd() == 0);
  CHECK(reply.finish_reason() == "stop");
}

TEST_CASE("A whole recorded reply comes back as it was") {
  auto endpoint = Make(
      R"({"task": "a", "turn": 0, "content": "<think>stays</think>", "reasoning": "hm",)"
      R"( "finish_reason": "length", "model": "m", "tool_calls": [{"id": "i", "name": "evaluate",)"
      R"( "arguments": "{"}], "usage": {"prompt_tokens": 7, "cached_prompt_tokens": 2,)"
      R"( "completion_tokens": 5, "reasoning_tokens": 3, "cost_usd": 0.5, "estimated": false}})");
  CancelToken cancel;
  auto reply = std::get<v1::ModelReply>(endpoint->Complete(Request("a", 0), cancel));
  CHECK(reply.content() == "<think>stays</think>");
  CHECK(reply.reasoning() == "hm");
  CHECK(reply.finish_reason() == "length");
  CHECK(reply.model() == "m");
  REQUIRE(reply.tool_calls_size() == 1);
  CHECK(reply.tool_calls(0).arguments() == "{");
  CHECK(reply.usage().requests() == 1);
  CHECK(reply.usage().prompt_tokens() == 7);
  CHECK(reply.usage().cached_prompt_tokens() == 2);
  CHECK(reply.usage().cost_usd() == 0.5);
  CHECK_FALSE(reply.usage().estimated());
}

TEST_CASE("A recording that is wrong is refused with line and reason") {
  const std::string good = "{\"task\": \"a\", \"turn\": 0, \"content\": \"x\"}\n";
  CHECK(absl::StrContains(ErrorOf(good + "nonsense"), "line 2"));
  CHECK(absl::StrContains(ErrorOf(R"({"task": "a", "turn": 0})"), "'content' is missing"));
  CHECK(absl::StrContains(ErrorOf(R"({"task": "a", "turn": -1, "content": ""})"), "turn"));
  CHECK(absl::StrContains(ErrorOf(R"({"task": 1, "turn": 0, "content": ""})"), "task"));
  CHECK(absl::StrContains(ErrorOf(R"({"task": "a", "turn": 0, "content": "", "x": 1})"),
                          "unknown key 'x'"));
  CHECK(absl::StrContains(ErrorOf(R"({"task": "a", "turn": 0, "content": "", "views": ["y"]})"),
                          "views"));
}
