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

TEST_CASE("turns hold a reply and what came of it") {
  auto conversation = ReadConversation(
      {Reply(0, kFirst, "one"), Result(1), Reply(2, {{v1::CHAT_ROLE_USER, "wrong"}}, "two")});
  REQUIRE(conversation.ok());
  REQUIRE(conversation->turns.size() == 2);
  CHECK(conversation->turns[0].result == 1u);
  CHECK(conversation->turns[0].message == 2);
  CHECK_FALSE(conversation->turns[1].result.has_value());
  CHECK(conversation->messages[conversation->turns[1].message].content() == "two");
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
      {"a late system message",
       {Reply(0, user, "one"),
        Reply(1, {{v1::CHAT_ROLE_SYSTEM, "rules"}, {v1::CHAT_ROLE_USER, "x"}}, "two")}},
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
