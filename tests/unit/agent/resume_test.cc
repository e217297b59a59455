// A conversation that is cut anywhere goes on exactly.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/unit/agent/conversation_fixture.h"

using namespace kmosaic;  // NOLINT: tests
using Fixture = ConversationFixture;

namespace {

std::string Describe(const Action& action) {
  std::string text = std::to_string(action.index()) + "\n";
  if (const auto* call = std::get_if<CallModel>(&action)) {
    text += StageName(call->stage) + " " + std::to_string(call->turn) + "\n";
    for (const auto& message : call->messages) text += message.SerializeAsString() + "\n";
    text += "added\n";
    for (const auto& message : call->added) text += message.SerializeAsString() + "\n";
    text += call->sampling.SerializeAsString();
    for (const auto& id : call->guidance) text += id + ",";
    for (uint32_t turn : call->left_out) text += std::to_string(turn) + ",";
  } else if (const auto* evaluate = std::get_if<Evaluate>(&action)) {
    text += evaluate->solution.SerializeAsString();
  } else if (const auto* record = std::get_if<RecordResult>(&action)) {
    text += record->result.SerializeAsString();
  } else {
    text += std::get<Stop>(action).result.SerializeAsString();
  }
  return text;
}

std::string RandomReply(std::mt19937& random) {
  switch (random() % 8) {
    case 0:
      return "no code at all";
    case 1:
      return "";
    case 2:
      return "```python\nclass ModelNew(nn.Module):\n";
    case 3: {
      std::string loop;
      for (int i = 0; i < 500; ++i) loop += "ab, ";
      return loop;
    }
    case 4:
      return Fixture::Code("again");
    default:
      return Fixture::Code("version " + std::to_string(random() % 1000) +
                           std::string(random() % 3000, 'x'));
  }
}

v1::EvaluationReport RandomReport(std::mt19937& random) {
  constexpr v1::Verdict kVerdicts[] = {v1::VERDICT_COMPILE_ERROR, v1::VERDICT_WRONG_OUTPUT,
                                       v1::VERDICT_CRASHED, v1::VERDICT_TIME_LIMIT};
  if (random() % 3 == 0) return Fixture::PassedWithWork(50 + static_cast<double>(random() % 100));
  return Fixture::Failed(kVerdicts[random() % 4]);
}

}  // namespace

TEST_CASE("A conversation resumed after any step goes on exactly as the one that was not cut") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Fixture c;
    c.job.mutable_budget()->set_turns(12);
    c.job.mutable_budget()->set_optimise_turns(4);
    c.job.mutable_budget()->set_context_tokens(seed % 3 == 0 ? 5000 : 40000);
    std::vector<std::string> actions;
    std::vector<absl::Time> times;
    std::vector<std::vector<v1::ChatMessage>> sent;
    while (true) {
      Action action = c.Next();
      actions.push_back(Describe(action));
      times.push_back(c.now);
      if (std::holds_alternative<Stop>(action)) break;
      if (auto* call = std::get_if<CallModel>(&action)) {
        sent.push_back(call->messages);
        c.Reply(RandomReply(random));
      } else if (std::holds_alternative<Evaluate>(action)) {
        c.Judge(RandomReport(random));
      } else {
        c.RecordNext();
      }
    }
    INFO("seed " << seed);
    REQUIRE(actions.size() == c.steps.size() + 1);
    for (size_t cut = 0; cut <= c.steps.size(); ++cut) {
      // As another process has them: from the wire.
      Steps steps;
      for (size_t i = 0; i < cut; ++i) {
        v1::Step step;
        REQUIRE(step.ParseFromString(c.steps[i].SerializeAsString()));
        steps.push_back(std::move(step));
      }
      auto action = NextAction(c.spec(), steps, times[cut]);
      REQUIRE(action.ok());
      REQUIRE(Describe(*action) == actions[cut]);
    }
    // What was sent can be rebuilt from the steps alone, and no message is empty.
    size_t call = 0;
    std::vector<v1::ChatMessage> rebuilt;
    std::vector<uint32_t> replies;  // those that stand in it
    for (const v1::Step& step : c.steps) {
      if (!step.has_reply()) continue;
      const auto& added = step.reply().added();
      REQUIRE(added.size() > 0);
      if (added[0].role() == v1::CHAT_ROLE_SYSTEM) rebuilt.clear();
      rebuilt.insert(rebuilt.end(), added.begin(), added.end());
      REQUIRE(rebuilt.size() == sent[call].size());
      for (size_t i = 0; i < rebuilt.size(); ++i) {
        REQUIRE(rebuilt[i].SerializeAsString() == sent[call][i].SerializeAsString());
        REQUIRE_FALSE(rebuilt[i].content().empty());
        v1::ChatRole role = i == 0       ? v1::CHAT_ROLE_SYSTEM
                            : i % 2 == 1 ? v1::CHAT_ROLE_USER
                                         : v1::CHAT_ROLE_ASSISTANT;
        REQUIRE(rebuilt[i].role() == role);
      }
      v1::ChatMessage answer;
      answer.set_role(v1::CHAT_ROLE_ASSISTANT);
      answer.set_content(step.reply().content());
      rebuilt.push_back(answer);
      // What is said to be left out is what does not stand there.
      if (added[0].role() == v1::CHAT_ROLE_SYSTEM) {
        replies.clear();
        for (uint32_t turn = 0; turn < call; ++turn) {
          const auto& out = step.reply().left_out();
          if (std::find(out.begin(), out.end(), turn) == out.end()) replies.push_back(turn);
        }
      }
      REQUIRE(replies.size() == sent[call].size() / 2 - 1);
      for (size_t i = 0; i < replies.size(); ++i) {
        REQUIRE(sent[call][2 + 2 * i].content() == c.steps[2 * replies[i]].reply().content());
      }
      replies.push_back(static_cast<uint32_t>(call));
      ++call;
    }
  }
}
