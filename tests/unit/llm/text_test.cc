// The pure parts of the endpoints: events, replies, headers, dialects.
#include <catch2/catch.hpp>
#include <random>

#include "absl/strings/match.h"
#include "agent_runner/llm/chat_protocol.h"
#include "agent_runner/llm/llm_errors.h"
#include "agent_runner/llm/lone_surrogates.h"
#include "agent_runner/llm/retry_after.h"
#include "agent_runner/llm/sse_parser.h"
#include "agent_runner/llm/thinking.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

std::vector<std::string> Events(const std::vector<std::string>& pieces) {
  std::vector<std::string> events;
  SseParser parser([&](std::string_view event, std::string_view data) {
    events.push_back(std::string(event) + "|" + std::string(data));
  });
  for (const std::string& piece : pieces) REQUIRE(parser.Feed(piece));
  parser.Finish();
  return events;
}

// A reply of OpenAI's API after these events.
class Streamed {
 public:
  explicit Streamed(const std::vector<std::string>& events) {
    for (const std::string& event : events) {
      if (!reply_->AddEvent(event)) break;
    }
  }
  const std::optional<LlmError>& error() const { return reply_->error(); }
  bool complete() const { return reply_->complete(); }
  v1::ModelReply Finish(uint64_t prompt_tokens) const { return reply_->Finish(prompt_tokens); }

 private:
  std::unique_ptr<ChatReply> reply_ = OpenAiProtocol().NewReply();
};

std::string Content(const std::string& text) {
  return R"({"choices":[{"index":0,"delta":{"content":")" + text + R"("}}]})";
}

const char kFinish[] = R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";

}  // namespace

TEST_CASE("SseParser reads events with any line end, comments, names and several data lines") {
  CHECK(Events({"data: a\n\ndata:b\r\n\r\ndata: c\r\r"}) ==
        std::vector<std::string>{"|a", "|b", "|c"});
  CHECK(Events({": ping\n\nevent: error\ndata: x\nid: 3\nretry: 10\n\n"}) ==
        std::vector<std::string>{"error|x"});
  CHECK(Events({"data: one\ndata: two\ndata\n\n"}) == std::vector<std::string>{"|one\ntwo\n"});
  CHECK(Events({"\xEF\xBB\xBF"
                "data: a\n\n"}) == std::vector<std::string>{"|a"});
  CHECK(Events({"data: last without its empty line"}) ==
        std::vector<std::string>{"|last without its empty line"});
  CHECK(Events({"\n\n\n"}).empty());
}

TEST_CASE("SseParser gives the same events however the bytes are cut") {
  std::string stream =
      "data: {\"a\": \"\xE6\xA0\xB8 \xF0\x9F\x9A\x80 \xC2\xB5s\"}\r\n\r\n: ping\r\n\r\n"
      "event: x\ndata: 1\ndata: 2\n\ndata: " +
      std::string(70'000, 'y') + "\r\rdata: [DONE]\n\n";
  const std::vector<std::string> whole = Events({stream});
  REQUIRE(whole.size() == 4);
  std::vector<std::string> bytes;
  for (char c : stream) bytes.emplace_back(1, c);
  CHECK(Events(bytes) == whole);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < stream.size();) {
      size_t size = random() % 4 == 0 ? random() % 30'000 : random() % 9;
      pieces.push_back(stream.substr(at, size));
      at += size;
    }
    REQUIRE(Events(pieces) == whole);
  }
}

TEST_CASE("SseParser stops at an event that is too large") {
  SseParser parser([](std::string_view, std::string_view) {}, 100);
  CHECK_FALSE(parser.Feed("data: " + std::string(200, 'x')));
  CHECK_FALSE(parser.Feed("\n\n"));
}

TEST_CASE("A reply is put together from its deltas") {
  Streamed reply({Content("Hel"), Content("lo"), kFinish, "[DONE]"});
  CHECK(reply.complete());
  v1::ModelReply finished = reply.Finish(5);
  CHECK(finished.content() == "Hello");
  CHECK(finished.finish_reason() == "stop");
}

TEST_CASE("Usage is counted once in whichever chunk it comes") {
  const std::string usage = R"("usage":{"prompt_tokens":11,"completion_tokens":7,)"
                            R"("completion_tokens_details":{"reasoning_tokens":3}})";
  auto check = [](const Streamed& reply) {
    v1::Usage counted = reply.Finish(999).usage();
    CHECK(counted.prompt_tokens() == 11);
    CHECK(counted.completion_tokens() == 7);
    CHECK(counted.reasoning_tokens() == 3);
    CHECK_FALSE(counted.estimated());
  };
  SECTION("after the end, with empty choices") {
    check(Streamed({Content("x"), kFinish, R"({"choices":[],)" + usage + "}", "[DONE]"}));
  }
  SECTION("choices null") {
    check(Streamed({Content("x"), kFinish, R"({"choices":null,)" + usage + "}", "[DONE]"}));
  }
  SECTION("choices absent") { check(Streamed({Content("x"), kFinish, "{" + usage + "}"})); }
  SECTION("within the finish chunk") {
    check(Streamed(
        {Content("x"), R"({"choices":[{"delta":{},"finish_reason":"stop"}],)" + usage + "}"}));
  }
  SECTION("twice") {
    check(Streamed({Content("x"), "{" + usage + "}", kFinish, "{" + usage + "}", "[DONE]"}));
  }
}

TEST_CASE("Usage that is missing, null or all zero is estimated and marked") {
  for (const char* extra :
       {"{}", R"({"usage":null})", R"({"usage":{"prompt_tokens":0,"completion_tokens":0}})"}) {
    v1::Usage usage = Streamed({Content("123456"), kFinish, extra, "[DONE]"}).Finish(42).usage();
    CHECK(usage.estimated());
    CHECK(usage.prompt_tokens() == 42);
    CHECK(usage.completion_tokens() == 2);
  }
}

TEST_CASE("Reasoning is kept apart under either name and in tags") {
  for (const char* name : {"reasoning_content", "reasoning"}) {
    std::string chunk =
        std::string(R"({"choices":[{"delta":{"content":null,")") + name + R"(":"hmm"}}]})";
    v1::ModelReply reply = Streamed({chunk, Content("Answer"), kFinish}).Finish(0);
    CHECK(reply.reasoning() == "hmm");
    CHECK(reply.content() == "Answer");
  }
  v1::ModelReply tagged =
      Streamed({Content("<think>hm"), Content("m</think>\\n\\nHi"), kFinish}).Finish(0);
  CHECK(tagged.reasoning() == "hmm");
  CHECK(tagged.content() == "Hi");
}

TEST_CASE("SplitThinking takes leading reasoning apart and leaves other tags alone") {
  CHECK(SplitThinking("plain").answer == "plain");
  CHECK(SplitThinking("\n<thinking>a</thinking> b").answer == "b");
  CHECK(SplitThinking("a stray end\n</think>\nThe answer").answer == "The answer");
  CHECK(SplitThinking("a stray end\n</think>\nThe answer").reasoning == "a stray end\n");
  SplitReply open = SplitThinking("<think>never closed ```python\nclass ModelNew: pass\n```");
  CHECK(open.answer.empty());
  CHECK(absl::StrContains(open.reasoning, "never closed"));
  const char* inside = "Use <think> and </think> as tags.";
  CHECK(SplitThinking(inside).answer == inside);
}

TEST_CASE("An error in the stream is no answer, and its kind is told") {
  Streamed overloaded({Content("half"),
                       R"({"error":{"type":"overloaded_error","message":"Overloaded"}})", kFinish});
  REQUIRE(overloaded.error());
  CHECK(overloaded.error()->kind == LlmError::Kind::kUnavailable);
  CHECK(absl::StrContains(overloaded.error()->message, "Overloaded"));
  CHECK(absl::StrContains(overloaded.error()->message, "overloaded_error"));
  Streamed invalid({R"({"error":{"type":"invalid_request_error","message":"no such model"}})"});
  CHECK(invalid.error()->kind == LlmError::Kind::kBadRequest);
  CHECK(Streamed({"not json"}).error()->kind == LlmError::Kind::kBadReply);
}

TEST_CASE("A stream is complete with a finish reason or [DONE]") {
  CHECK_FALSE(Streamed({Content("x")}).complete());
  CHECK(Streamed({Content("x"), kFinish}).complete());
  CHECK(Streamed({Content("x"), "[DONE]"}).complete());
}

TEST_CASE("Surrogate halves in two deltas become one character") {
  v1::ModelReply reply =
      Streamed({Content("a \\ud83d"), Content("\\ude80 b \\u00b5"), kFinish}).Finish(0);
  CHECK(reply.content() == "a \xF0\x9F\x9A\x80 b \xC2\xB5");
  v1::ModelReply alone = Streamed({Content("a \\ud83d b"), kFinish}).Finish(0);
  CHECK(alone.content() == "a \xEF\xBF\xBD b");
  bool found = false;
  std::string whole = R"("\ud83d\ude80 \\ud83d \n")";
  CHECK(HideLoneSurrogates(whole, &found) == whole);
  CHECK_FALSE(found);
}

TEST_CASE("Context overflow is told in every server's words, with the window where it is named") {
  auto classify = [](const std::string& body) { return ClassifyError(400, body); };
  LlmError coded = classify(
      R"({"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 8192 tokens."}})");
  CHECK(coded.kind == LlmError::Kind::kContextOverflow);
  CHECK(coded.window_tokens == 8192);
  LlmError text = classify(
      R"({"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 4097 tokens (97 in the messages, 4000 in the completion)."})");
  CHECK(text.kind == LlmError::Kind::kContextOverflow);
  CHECK(text.window_tokens == 4096);
  LlmError size = classify(
      R"({"error":{"message":"the request exceeds the available context size of 2048 tokens"}})");
  CHECK(size.kind == LlmError::Kind::kContextOverflow);
  CHECK(size.window_tokens == 2048);
  LlmError prompt = classify(
      R"({"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}})");
  CHECK(prompt.kind == LlmError::Kind::kContextOverflow);
  CHECK(prompt.window_tokens == 200000);
}

TEST_CASE("HTTP statuses have their kinds") {
  CHECK(ClassifyError(401, "").kind == LlmError::Kind::kAuth);
  CHECK(ClassifyError(403, "").kind == LlmError::Kind::kAuth);
  CHECK(ClassifyError(404, "").kind == LlmError::Kind::kBadRequest);
  CHECK(ClassifyError(400, "bad").kind == LlmError::Kind::kBadRequest);
  CHECK(ClassifyError(429, "").kind == LlmError::Kind::kRateLimited);
  CHECK(ClassifyError(500, "").kind == LlmError::Kind::kUnavailable);
  CHECK(ClassifyError(503, "").kind == LlmError::Kind::kUnavailable);
  CHECK_FALSE(IsRetryable(LlmError::Kind::kBadRequest));
  CHECK_FALSE(IsRetryable(LlmError::Kind::kContextOverflow));
  CHECK(IsRetryable(LlmError::Kind::kRateLimited));
}

TEST_CASE("Retry-After is read in both forms and garbage is ignored") {
  absl::Time now = absl::FromUnixSeconds(784111777);  // Sun, 06 Nov 1994 08:49:37 GMT
  CHECK(ParseRetryAfter("2", now) == absl::Seconds(2));
  CHECK(ParseRetryAfter(" 1.5 ", now) == absl::Milliseconds(1500));
  CHECK(ParseRetryAfter("0", now) == absl::ZeroDuration());
  CHECK(ParseRetryAfter("999999", now) == absl::Seconds(999999));
  CHECK(ParseRetryAfter("Sun, 06 Nov 1994 08:49:40 GMT", now) == absl::Seconds(3));
  CHECK(ParseRetryAfter("Sun, 06 Nov 1994 08:49:07 GMT", now) == absl::ZeroDuration());
  CHECK(ParseRetryAfter("-1", now) == std::nullopt);
  CHECK(ParseRetryAfter("soon", now) == std::nullopt);
  CHECK(ParseRetryAfter("", now) == std::nullopt);
}

TEST_CASE("A request holds no null and no empty message") {
  v1::Endpoint endpoint;
  endpoint.set_model("m");
  endpoint.set_stream(true);
  LlmRequest request;
  request.sampling.set_max_tokens(100);
  request.sampling.set_temperature(0.5);
  for (v1::ChatRole role : {v1::CHAT_ROLE_SYSTEM, v1::CHAT_ROLE_USER, v1::CHAT_ROLE_ASSISTANT}) {
    v1::ChatMessage message;
    message.set_role(role);
    if (role != v1::CHAT_ROLE_ASSISTANT) message.set_content("text");
    request.messages.push_back(message);
  }
  CHECK(OpenAiProtocol().Body(endpoint, request, {}) ==
        R"({"model":"m","messages":[{"role":"system","content":"text"},)"
        R"({"role":"user","content":"text"}],"temperature":0.5,"max_tokens":100,)"
        R"("stream":true,"stream_options":{"include_usage":true}})");
}

TEST_CASE("AdaptDialect avoids what is complained about and nothing else") {
  ChatDialect plain;
  ChatDialect modern =
      AdaptDialect(plain,
                   "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                   "'max_completion_tokens' instead.");
  CHECK(modern.max_completion_tokens);
  CHECK(modern.temperature);
  CHECK_FALSE(AdaptDialect(modern, "'temperature' does not support 0.5").temperature);
  CHECK_FALSE(AdaptDialect(modern, "unknown field max_completion_tokens").max_completion_tokens);
  CHECK_FALSE(AdaptDialect(plain, "stream_options: extra fields not permitted").stream_options);
  CHECK(AdaptDialect(plain, "model not found") == plain);
}
