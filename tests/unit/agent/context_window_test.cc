#include "agent_runner/agent/context_window.h"

#include <catch2/catch.hpp>

#include "agent_runner/agent/degenerate.h"
#include "agent_runner/llm/token_estimate.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

v1::ChatMessage Message(v1::ChatRole role, const std::string& name, size_t tokens) {
  v1::ChatMessage message;
  message.set_role(role);
  message.set_content(name + std::string(tokens * 3 - name.size(), '.'));
  return message;
}

// System, task, then replies r0.. with feedback f0.. between them; the last feedback is
// `next`.
struct Talk {
  std::vector<v1::ChatMessage> earlier;
  v1::ChatMessage next;
};

Talk TalkOf(int replies, size_t tokens) {
  Talk talk;
  talk.earlier = {Message(v1::CHAT_ROLE_SYSTEM, "system", 100),
                  Message(v1::CHAT_ROLE_USER, "task", 100)};
  for (int i = 0; i < replies; ++i) {
    talk.earlier.push_back(Message(v1::CHAT_ROLE_ASSISTANT, "r" + std::to_string(i), tokens));
    v1::ChatMessage feedback = Message(v1::CHAT_ROLE_USER, "f" + std::to_string(i), 20);
    if (i + 1 < replies) {
      talk.earlier.push_back(feedback);
    } else {
      talk.next = feedback;
    }
  }
  return talk;
}

std::string Names(const std::vector<v1::ChatMessage>& messages) {
  std::string names;
  for (const auto& message : messages) {
    names += message.content().substr(0, message.content().find('.')) + " ";
  }
  return names;
}

}  // namespace

TEST_CASE("FitContext changes nothing where everything fits") {
  Talk talk = TalkOf(3, 500);
  auto fitted = FitContext(talk.earlier, talk.next, {}, {10000, 1000, 1});
  REQUIRE(fitted);
  CHECK(fitted->left_out.empty());
  CHECK(fitted->max_tokens == 1000);
  CHECK(Names(fitted->messages) == "system task r0 f0 r1 f1 r2 f2 ");
  CHECK(FitContext(talk.earlier, talk.next, {}, {0, 1000, 1})->left_out.empty());
}

TEST_CASE("FitContext lowers the reply's cap before it leaves anything out") {
  Talk talk = TalkOf(1, 500);
  auto fitted = FitContext(talk.earlier, talk.next, {}, {1400, 1000, 1});
  REQUIRE(fitted);
  CHECK(fitted->left_out.empty());
  CHECK(fitted->max_tokens >= 500);
  CHECK(fitted->max_tokens < 1000);
}

TEST_CASE("FitContext leaves out the oldest turns but keeps the best version") {
  Talk talk = TalkOf(4, 500);
  auto fitted = FitContext(talk.earlier, talk.next, {}, {1900, 1000, 1});
  REQUIRE(fitted);
  CHECK(fitted->left_out == std::vector<size_t>{0, 1});
  CHECK(Names(fitted->messages) == "system task r2 f2 r3 f3 ");
  fitted = FitContext(talk.earlier, talk.next, 0, {1900, 1000, 1});
  REQUIRE(fitted);
  CHECK(fitted->left_out == std::vector<size_t>{1, 2});
  CHECK(Names(fitted->messages) == "system task r0 f0 r3 f3 ");
}

TEST_CASE("FitContext keeps the best version rather than the latest where both do not fit") {
  Talk talk = TalkOf(3, 2000);
  auto fitted = FitContext(talk.earlier, talk.next, 0, {4000, 2000, 1});
  REQUIRE(fitted);
  CHECK(Names(fitted->messages) == "system task r0 f2 ");
}

TEST_CASE("FitContext gives up where the smallest form leaves no room for a reply") {
  Talk talk = TalkOf(2, 3000);
  CHECK_FALSE(FitContext(talk.earlier, talk.next, {}, {4000, 4000, 1}));
  CHECK(FitContext(talk.earlier, talk.next, {}, {4300, 4000, 1}));
}

TEST_CASE("FitContext counts by the scale that an endpoint has taught") {
  Talk talk = TalkOf(2, 500);
  CHECK(FitContext(talk.earlier, talk.next, {}, {2400, 1000, 1})->left_out.empty());
  CHECK_FALSE(FitContext(talk.earlier, talk.next, {}, {2400, 1000, 1.6})->left_out.empty());
}

TEST_CASE("EndsInRepetition sees loops of words and single characters, not code") {
  std::string loop = "some words first ";
  for (int i = 0; i < 300; ++i) loop += "_idx_idx";
  CHECK(EndsInRepetition(loop));
  CHECK(EndsInRepetition(std::string(5000, '=')));
  CHECK_FALSE(EndsInRepetition(std::string(100, '=')));
  CHECK_FALSE(EndsInRepetition(""));
  std::string code;
  for (int i = 0; i < 100; ++i) {
    code += "  y[" + std::to_string(i * 7919) + "] = f" + std::to_string(i % 13) + "(x[" +
            std::to_string(i * i) + "]);\n";
  }
  CHECK_FALSE(EndsInRepetition(code));
}

TEST_CASE("EndsInRepetition sees short loops: eight pieces and 400 bytes at least") {
  auto loop = [](const std::string& piece, int times) {
    std::string text = "Let me think about how to tile this. ";
    for (int i = 0; i < times; ++i) text += piece;
    return text;
  };
  const std::string words = "I will write the kernel now. ";  // 29 bytes
  CHECK(EndsInRepetition(loop(words, 14)));
  CHECK_FALSE(EndsInRepetition(loop(words, 8)));  // emphasis, not yet a loop
  const std::string line =
      "The shared memory tile has to be padded to avoid bank conflicts, so we "
      "load it in two steps.\n";  // 93 bytes
  CHECK(EndsInRepetition(loop(line, 9)));
  CHECK_FALSE(EndsInRepetition(loop(line, 6)));
  CHECK(EndsInRepetition(loop("\n", 400)));
  // Rows of a table differ where it matters.
  std::string table = "| n | time |\n|---|---|\n";
  for (int i = 1; i < 60; ++i) {
    table += "| " + std::to_string(i * i * 37) + " | " + std::to_string(i * 911 % 97) + " us |\n";
  }
  CHECK_FALSE(EndsInRepetition(table));
}
