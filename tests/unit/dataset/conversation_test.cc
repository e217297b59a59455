#include "coordinator/dataset/conversation.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

using Added = std::vector<std::pair<v1::ChatRole, std::string>>;

v1::Step Reply(uint32_t number, const Added& added, const std::string& content) {
  v1::Step step;
  step.set_number(number);
  for (const auto& [role, text] : added) {
    v1::ChatMessage* message = step.mutable_reply()->add_added();
    message->set_role(role);
    message->set_content(text);
  }
  step.mutable_reply()->set_content(content);
  return step;
}

v1::Step Result(uint32_t number) {
  v1::Step step;
  step.set_number(number);
  step.mutable_result();
  return step;
}

const Added kFirst = {{v1::CHAT_ROLE_SYSTEM, "rules"}, {v1::CHAT_ROLE_USER, "task"}};

// A context that starts anew: the task, then each of `kept` with feedback to it.
Added Anew(const std::vector<std::string>& kept) {
  Added added = kFirst;
  for (const std::string& reply : kept) {
    added.emplace_back(v1::CHAT_ROLE_ASSISTANT, reply);
    added.emplace_back(v1::CHAT_ROLE_USER, "about " + reply);
  }
  return added;
}

std::vector<std::string> Contents(const std::vector<v1::ChatMessage>& messages) {
  std::vector<std::string> contents;
  for (const v1::ChatMessage& message : messages) contents.push_back(message.content());
  return contents;
}

TEST_CASE("turns hold a reply and what came of it") {
  auto conversation = ReadConversation(
      {Reply(0, kFirst, "one"), Result(1), Reply(2, {{v1::CHAT_ROLE_USER, "wrong"}}, "two")});
  REQUIRE(conversation.ok());
  REQUIRE(conversation->turns.size() == 2);
  CHECK(conversation->turns[0].result == 1u);
  CHECK(conversation->turns[0].message == 2);
  CHECK_FALSE(conversation->turns[1].result.has_value());
  CHECK(conversation->messages[conversation->turns[1].message.value()].content() == "two");
}

TEST_CASE("messages of one role in a row become one") {
  auto conversation = ReadConversation({Reply(0,
                                              {{v1::CHAT_ROLE_SYSTEM, "rules"},
                                               {v1::CHAT_ROLE_SYSTEM, "more"},
                                               {v1::CHAT_ROLE_USER, "guidance"},
                                               {v1::CHAT_ROLE_USER, "task"}},
                                              "one")});
  REQUIRE(conversation.ok());
  REQUIRE(conversation->messages.size() == 3);
  CHECK(conversation->messages[0].content() == "rules\n\nmore");
  CHECK(conversation->messages[1].content() == "guidance\n\ntask");
  CHECK(conversation->turns[0].message == 2);
}

TEST_CASE("a context that starts anew is all that the model saw from then on") {
  auto conversation = ReadConversation(
      {Reply(0, kFirst, "one"), Reply(1, {{v1::CHAT_ROLE_USER, "bad"}}, "two"),
       Reply(2, {{v1::CHAT_ROLE_USER, "good"}}, "three"), Reply(3, Anew({"two", "three"}), "four"),
       Reply(4, {{v1::CHAT_ROLE_USER, "again"}}, "five")});
  REQUIRE(conversation.ok());
  CHECK(Contents(conversation->messages) ==
        std::vector<std::string>{"rules", "task", "two", "about two", "three", "about three",
                                 "four", "again", "five"});
  CHECK(Contents(conversation->opening) == std::vector<std::string>{"rules", "task"});
  REQUIRE(conversation->turns.size() == 5);
  const std::optional<size_t> places[] = {std::nullopt, 2, 4, 6, 8};
  const size_t contexts[] = {0, 0, 0, 1, 1};
  for (size_t i = 0; i < 5; ++i) {
    INFO(i);
    CHECK(conversation->turns[i].message == places[i]);
    CHECK(conversation->turns[i].context == contexts[i]);
  }
}

TEST_CASE("a reply that a later context leaves out stays out") {
  auto conversation =
      ReadConversation({Reply(0, kFirst, "one"), Reply(1, Anew({"one"}), "two"),
                        Reply(2, Anew({"two"}), "three"), Reply(3, Anew({}), "four")});
  REQUIRE(conversation.ok());
  CHECK(Contents(conversation->messages) == std::vector<std::string>{"rules", "task", "four"});
  for (size_t i = 0; i < 3; ++i) CHECK_FALSE(conversation->turns[i].message.has_value());
  CHECK(conversation->turns[3].message == 2);
  CHECK(conversation->turns[3].context == 3);
}

TEST_CASE("of replies with the same text a new context holds the latest") {
  auto conversation =
      ReadConversation({Reply(0, kFirst, "same"), Reply(1, {{v1::CHAT_ROLE_USER, "x"}}, "same"),
                        Reply(2, Anew({"same"}), "other")});
  REQUIRE(conversation.ok());
  CHECK_FALSE(conversation->turns[0].message.has_value());
  CHECK(conversation->turns[1].message == 2);
}

TEST_CASE("tool calls and their answers are shown as fenced blocks and users' messages") {
  const std::string source = "class ModelNew: ...\n";
  v1::Step first = Reply(0, kFirst, "Here:");
  v1::ToolCall& call = *first.mutable_reply()->add_tool_calls();
  call.set_id("theirs");
  call.set_name("evaluate");
  call.set_arguments(R"({"source":"class ModelNew: ...\n"})");
  v1::Step second = Reply(2, {{v1::CHAT_ROLE_TOOL, "It is wrong."}}, "");
  v1::ToolCall& broken = *second.mutable_reply()->add_tool_calls();
  broken.set_name("evaluate");
  broken.set_arguments("{\"sou");
  // A context that starts anew holds the first call under an id of ours.
  v1::Step third = Reply(4, kFirst, "done");
  v1::ChatMessage& again = *third.mutable_reply()->add_added();
  again.set_role(v1::CHAT_ROLE_ASSISTANT);
  again.set_content("Here:");
  *again.add_tool_calls() = call;
  again.mutable_tool_calls(0)->set_id("call_0");
  v1::ChatMessage& answer = *third.mutable_reply()->add_added();
  answer.set_role(v1::CHAT_ROLE_TOOL);
  answer.set_content("It is wrong.");
  third.mutable_reply()->add_left_out(1);
  auto two = ReadConversation({first, Result(1), second, Result(3)});
  REQUIRE(two.ok());
  REQUIRE(two->messages.size() == 5);
  CHECK(two->messages[2].content() == "Here:\n```python\n" + source + "```\n");
  CHECK(two->messages[3].role() == v1::CHAT_ROLE_USER);
  CHECK(two->messages[4].content() == "evaluate {\"sou");
  auto three = ReadConversation({first, Result(1), second, Result(3), third});
  REQUIRE(three.ok());
  REQUIRE(three->messages.size() == 5);
  CHECK(three->turns[0].message == 2u);
  CHECK_FALSE(three->turns[1].message.has_value());
}

TEST_CASE("a last reply without text is left out, and one alone is no conversation") {
  v1::Step empty = Reply(2, {{v1::CHAT_ROLE_USER, "again"}}, " \n");
  auto conversation = ReadConversation({Reply(0, kFirst, "one"), Result(1), empty});
  REQUIRE(conversation.ok());
  CHECK(conversation->messages.back().content() == "one");
  CHECK(conversation->turns.size() == 2);
  CHECK_FALSE(conversation->turns[1].message.has_value());
  CHECK(absl::IsNotFound(ReadConversation({Reply(0, kFirst, "")}).status()));
}

TEST_CASE("roles alternate or the conversation is refused") {
  Added user = {{v1::CHAT_ROLE_USER, "task"}};
  struct Case {
    std::string name;
    std::vector<v1::Step> steps;
  };
  const Case cases[] = {
      {"a gap", {Reply(1, user, "one")}},
      {"a result first", {Result(0)}},
      {"two results", {Reply(0, user, "one"), Result(1), Result(2)}},
      {"a reply that nobody asked for", {Reply(0, user, "one"), Reply(1, {}, "two")}},
      {"only a system message", {Reply(0, {{v1::CHAT_ROLE_SYSTEM, "rules"}}, "one")}},
      {"a system message that does not begin a context",
       {Reply(0, user, "one"),
        Reply(1, {{v1::CHAT_ROLE_USER, "x"}, {v1::CHAT_ROLE_SYSTEM, "rules"}}, "two")}},
      {"a new context with a reply that was never given",
       {Reply(0, kFirst, "one"), Reply(1, Anew({"another"}), "two")}},
      {"a new context with a reply twice",
       {Reply(0, kFirst, "one"), Reply(1, Anew({"one", "one"}), "two")}},
      {"a new context with replies in another order",
       {Reply(0, kFirst, "one"), Reply(1, {{v1::CHAT_ROLE_USER, "x"}}, "two"),
        Reply(2, Anew({"two", "one"}), "three")}},
      {"no role", {Reply(0, {{v1::CHAT_ROLE_UNSPECIFIED, "x"}}, "one")}},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(absl::IsInvalidArgument(ReadConversation(c.steps).status()));
  }
}

TEST_CASE("no reply is no conversation") { CHECK(absl::IsNotFound(ReadConversation({}).status())); }

}  // namespace
}  // namespace kmosaic
