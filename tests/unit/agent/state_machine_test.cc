#include "agent_runner/agent/state_machine.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/agent/conversation_fixture.h"

using namespace kmosaic;  // NOLINT: tests
using Fixture = ConversationFixture;

TEST_CASE("A conversation begins with system and task in IMPLEMENT") {
  Fixture c;
  auto call = std::get<CallModel>(c.Next());
  CHECK(call.stage == v1::STAGE_IMPLEMENT);
  CHECK(call.turn == 0);
  REQUIRE(call.messages.size() == 2);
  CHECK(call.messages[0].role() == v1::CHAT_ROLE_SYSTEM);
  CHECK(call.messages[1].role() == v1::CHAT_ROLE_USER);
  CHECK(call.added.size() == 2);
  CHECK(call.sampling.max_tokens() == 2048);
}

TEST_CASE("A reply with code is evaluated") {
  Fixture c;
  c.Reply(Fixture::Code("v1"));
  auto evaluate = std::get<Evaluate>(c.Next());
  CHECK(evaluate.solution.contract() == v1::CONTRACT_MODELNEW);
  CHECK(evaluate.solution.source() == Fixture::Source("v1"));
  CHECK_FALSE(evaluate.benchmark);
}

TEST_CASE("A benchmark is only asked for on a GPU") {
  Fixture c;
  c.job.mutable_evaluation()->set_benchmark(true);
  c.Reply(Fixture::Code("v1"));
  CHECK_FALSE(std::get<Evaluate>(c.Next()).benchmark);
  c.job.mutable_evaluation()->set_device(v1::DEVICE_KIND_CUDA);
  CHECK(std::get<Evaluate>(c.Next()).benchmark);
}

TEST_CASE("A wrong version leads to REPAIR with the whole conversation sent") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_COMPILE_ERROR, "expected ';'"));
  auto call = std::get<CallModel>(c.Next());
  CHECK(call.stage == v1::STAGE_REPAIR);
  CHECK(call.turn == 1);
  REQUIRE(call.messages.size() == 4);
  CHECK(call.messages[2].role() == v1::CHAT_ROLE_ASSISTANT);
  CHECK(call.messages[2].content() == Fixture::Code("v1"));
  REQUIRE(call.added.size() == 1);
  CHECK(absl::StrContains(call.added[0].content(), "expected ';'"));
}

TEST_CASE("A verified version ends the conversation when no optimisation is asked for") {
  Fixture c;
  c.job.mutable_budget()->set_optimise_turns(0);
  c.ReplyAndJudge("v1", Fixture::PassedWithWork(100));
  v1::ItemResult result = c.Ended();
  CHECK(result.verified());
  CHECK(result.stop_reason() == v1::STOP_REASON_SOLVED);
  CHECK(result.verdict() == v1::VERDICT_PASSED);
  CHECK(result.best_step() == 1);
  CHECK(result.turns() == 1);
  CHECK(result.usage().requests() == 1);
  CHECK(result.usage().prompt_tokens() == 100);
  CHECK(result.seconds() == Approx(90));  // call of 30 s, then the verdict after a minute
}

TEST_CASE("A verified version without any measure is solved: there is nothing to optimise by") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_PASSED));
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_SOLVED);
  CHECK_FALSE(c.Ended().has_work_ratio());
}

TEST_CASE("Counted work is what OPTIMISE goes by on the emulated device") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::PassedWithWork(100));
  CHECK(std::get<CallModel>(c.Next()).stage == v1::STAGE_OPTIMISE);
  CHECK(absl::StrContains(c.LastUserMessage(), "not a time"));
  c.ReplyAndJudge("v2", Fixture::PassedWithWork(60));
  CHECK(c.steps.back().result().best());
  c.ReplyAndJudge("v3", Fixture::PassedWithWork(80));
  CHECK_FALSE(c.steps.back().result().best());
  CHECK(c.steps.back().result().rolled_back());
  c.ReplyAndJudge("v4", Fixture::Failed(v1::VERDICT_WRONG_OUTPUT));
  v1::ItemResult result = c.Ended();
  CHECK(result.verified());
  CHECK(result.stop_reason() == v1::STOP_REASON_SOLVED);
  CHECK(result.best_step() == 3);
  CHECK(result.work_ratio() == Approx(0.6));
  CHECK_FALSE(result.has_speedup());
}

TEST_CASE("An optimisation that does not pay is rolled back with evidence and the best version") {
  Fixture c;
  c.ReplyAndJudge("good", Fixture::PassedWithWork(100));
  c.ReplyAndJudge("slower", Fixture::PassedWithWork(130));
  std::string feedback = c.LastUserMessage();
  CHECK(absl::StrContains(feedback, "130"));
  CHECK(absl::StrContains(feedback, "100"));
  CHECK(absl::StrContains(feedback, "# good"));
  CHECK_FALSE(absl::StrContains(feedback, "# slower"));
}

TEST_CASE("Less than two per cent is no gain") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::PassedWithWork(1000));
  c.ReplyAndJudge("v2", Fixture::PassedWithWork(985));
  CHECK(c.steps.back().result().rolled_back());
}

TEST_CASE("Three optimisations in a row that give nothing end the conversation") {
  Fixture c;
  c.job.mutable_budget()->set_optimise_turns(8);
  c.ReplyAndJudge("v1", Fixture::PassedWithWork(100));
  c.ReplyAndJudge("v2", Fixture::PassedWithWork(100));
  c.ReplyAndJudge("v3", Fixture::PassedWithWork(100));
  CHECK_FALSE(c.Ends());
  c.ReplyAndJudge("v4", Fixture::PassedWithWork(100));
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_SOLVED);
}

TEST_CASE("On a GPU the speedup decides, with target and floor") {
  Fixture c;
  c.job.mutable_evaluation()->set_device(v1::DEVICE_KIND_CUDA);
  c.job.mutable_evaluation()->set_benchmark(true);
  c.job.mutable_budget()->set_optimise_turns(5);
  SECTION("goes on while it pays") {
    c.ReplyAndJudge("v1", Fixture::PassedWithTime(100, 150, 20));
    CHECK(std::get<CallModel>(c.Next()).stage == v1::STAGE_OPTIMISE);
    c.ReplyAndJudge("v2", Fixture::PassedWithTime(50, 150, 20));
    CHECK(c.steps.back().result().best());
    CHECK(absl::StrContains(c.LastUserMessage(), "speedup 3"));
  }
  SECTION("target reached") {
    c.job.set_target_speedup(2);
    c.ReplyAndJudge("v1", Fixture::PassedWithTime(50, 150, 20));
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TARGET_REACHED);
    CHECK(c.Ended().speedup() == Approx(3));
  }
  SECTION("at the floor") {
    c.ReplyAndJudge("v1", Fixture::PassedWithTime(21, 150, 20));
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_AT_FLOOR);
  }
}

TEST_CASE("Budgets end a conversation with their own reasons") {
  Fixture c;
  auto fail_once = [&](const std::string& body) {
    c.ReplyAndJudge(body, Fixture::Failed(v1::VERDICT_COMPILE_ERROR));
  };
  SECTION("turns") {
    c.job.mutable_budget()->set_turns(2);
    fail_once("v1");
    CHECK_FALSE(c.Ends());
    fail_once("v2");
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TURN_BUDGET);
    CHECK_FALSE(c.Ended().verified());
    CHECK(c.Ended().verdict() == v1::VERDICT_COMPILE_ERROR);
  }
  SECTION("tokens that are used up") {
    c.job.mutable_budget()->set_tokens(5000);
    fail_once("v1");
    CHECK_FALSE(c.Ends());
    c.job.mutable_budget()->set_tokens(150);
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TOKEN_BUDGET);
  }
  SECTION("tokens that the next call would exceed") {
    fail_once("v1");
    c.job.mutable_budget()->set_tokens(600);
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TOKEN_BUDGET);
  }
  SECTION("the reply's cap is what is left of the tokens") {
    c.job.mutable_budget()->set_tokens(3000);
    auto call = std::get<CallModel>(c.Next());
    CHECK(call.sampling.max_tokens() < 2048 + 1);
    c.job.mutable_budget()->set_tokens(1800);
    auto tighter = std::get<CallModel>(c.Next());
    CHECK(tighter.sampling.max_tokens() < call.sampling.max_tokens());
  }
  SECTION("money") {
    c.job.mutable_budget()->set_cost_usd(0.015);
    fail_once("v1");
    CHECK_FALSE(c.Ends());
    fail_once("v2");
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_COST_BUDGET);
  }
  SECTION("time from the first call on") {
    c.job.mutable_budget()->mutable_time()->set_seconds(300);
    fail_once("v1");
    CHECK_FALSE(c.Ends());
    c.now += absl::Minutes(4);
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TIME_BUDGET);
  }
}

TEST_CASE("A budget that ends after a verified version keeps it") {
  Fixture c;
  c.job.mutable_budget()->set_turns(2);
  c.ReplyAndJudge("v1", Fixture::PassedWithWork(100));
  c.ReplyAndJudge("v2", Fixture::Failed(v1::VERDICT_CRASHED));
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TURN_BUDGET);
  CHECK(c.Ended().verified());
  CHECK(c.Ended().best_step() == 1);
}

TEST_CASE("A resubmission is not evaluated again and two in a row are no progress") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_WRONG_SHAPE, "shape (3) is not (4)"));
  c.Reply(Fixture::Code("v1"));
  auto record = std::get<RecordResult>(c.Next());
  CHECK(record.result.report().verdict() == v1::VERDICT_WRONG_SHAPE);
  CHECK(record.result.extraction_error().empty());
  c.RecordNext();
  std::string feedback = c.LastUserMessage();
  CHECK(absl::StrContains(feedback, "reply number 1"));
  CHECK(absl::StrContains(feedback, "shape (3) is not (4)"));
  c.Reply(Fixture::Code("v1"));
  c.RecordNext();
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_NO_PROGRESS);
}

TEST_CASE("A new version between two resubmissions is progress") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_WRONG_SHAPE));
  c.Reply(Fixture::Code("v1"));
  c.RecordNext();
  c.ReplyAndJudge("v2", Fixture::Failed(v1::VERDICT_WRONG_SHAPE));
  c.Reply(Fixture::Code("v2"));
  c.RecordNext();
  CHECK_FALSE(c.Ends());
}

TEST_CASE("A reply without a version is told how to answer, and three in a row are no progress") {
  Fixture c;
  c.Reply("Just prose.");
  c.RecordNext();
  CHECK(absl::StartsWith(c.steps.back().result().extraction_error(), "no_code: "));
  CHECK_FALSE(c.steps.back().result().has_solution());
  auto call = std::get<CallModel>(c.Next());
  CHECK(call.stage == v1::STAGE_REPAIR);
  CHECK(absl::StrContains(call.messages.back().content(), "```python"));
  c.Reply("```python\nclass ModelNew:", "length");
  c.RecordNext();
  CHECK(absl::StartsWith(c.steps.back().result().extraction_error(), "truncated: "));
  CHECK(absl::StrContains(c.LastUserMessage(), "2048"));
  c.Reply("```python\nclass Other: pass\n```\n");
  c.RecordNext();
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_NO_PROGRESS);
  CHECK(c.Ended().verdict() == v1::VERDICT_UNSPECIFIED);
}

TEST_CASE("An empty reply is never sent back as an assistant message") {
  Fixture c;
  c.Reply("  \n");
  c.RecordNext();
  CHECK(absl::StartsWith(c.steps.back().result().extraction_error(), "empty: "));
  auto call = std::get<CallModel>(c.Next());
  REQUIRE(call.messages.size() == 2);
  CHECK(call.messages[0].role() == v1::CHAT_ROLE_SYSTEM);
  CHECK(call.messages[1].role() == v1::CHAT_ROLE_USER);
  CHECK(absl::StrContains(call.messages[1].content(), "Multiply each element by two."));
  CHECK(absl::StrContains(call.messages[1].content(), "was empty"));
  CHECK(call.added.size() == 2);  // the context begins anew
}

TEST_CASE("A reply that ended within its reasoning is truncated, not a kernel") {
  Fixture c;
  c.Reply("", "length");
  c.RecordNext();
  CHECK(absl::StartsWith(c.steps.back().result().extraction_error(), "truncated: "));
  CHECK(std::get<CallModel>(c.Next()).messages.size() == 2);
}

TEST_CASE("A loop that a small limit cut short is degenerate, not a reply without code") {
  Fixture c;
  std::string loop;
  for (int i = 0; i < 20; ++i) loop += "I will write the kernel now. ";
  REQUIRE(loop.size() < 1500);
  c.Reply(loop, "length");
  c.RecordNext();
  CHECK(absl::StartsWith(c.steps.back().result().extraction_error(), "degenerate: "));
  CHECK(std::get<CallModel>(c.Next()).messages.size() == 2);
}

TEST_CASE("Two degenerate replies in a row end the conversation") {
  Fixture c;
  std::string loop = "```python\n";
  for (int i = 0; i < 400; ++i) loop += "_idx_idx_";
  c.Reply(loop);
  c.RecordNext();
  CHECK(absl::StartsWith(c.steps.back().result().extraction_error(), "degenerate: "));
  CHECK_FALSE(absl::StrContains(c.LastUserMessage(), "_idx_idx_idx_"));
  c.Reply("");
  c.RecordNext();
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_DEGENERATE_OUTPUT);
}

TEST_CASE("An invalid task ends the conversation at once and INFRASTRUCTURE is never shown") {
  Fixture c;
  SECTION("invalid task") {
    c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_INVALID_TASK, "reference raises"));
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_INVALID_TASK);
    CHECK(c.Ended().reason() == "reference raises");
  }
  SECTION("infrastructure") {
    c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_INFRASTRUCTURE, "disk full"));
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_INFRASTRUCTURE);
  }
}

TEST_CASE("The context window is kept by leaving out the oldest turns") {
  Fixture c;
  c.job.mutable_budget()->set_context_tokens(4500);
  c.job.mutable_budget()->set_turns(20);
  for (int i = 0; i < 4; ++i) {
    c.ReplyAndJudge("version " + std::to_string(i) + std::string(2400, 'x'),
                    Fixture::Failed(v1::VERDICT_COMPILE_ERROR));
  }
  auto call = std::get<CallModel>(c.Next());
  REQUIRE(call.messages.size() < 10);
  CHECK(call.messages[0].role() == v1::CHAT_ROLE_SYSTEM);
  CHECK(absl::StrContains(call.messages[1].content(), "Twice each element"));
  CHECK(absl::StrContains(call.messages[call.messages.size() - 2].content(), "version 3"));
  // What is recorded is what was sent.
  CHECK(call.added.size() == call.messages.size());
}

TEST_CASE("A task that does not fit into the window is exhausted before any call") {
  Fixture c;
  c.job.mutable_budget()->set_context_tokens(600);
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_CONTEXT_EXHAUSTED);
}

TEST_CASE("What an endpoint says about its window counts from then on") {
  Fixture c;
  c.ReplyAndJudge("v1" + std::string(6000, 'x'), Fixture::Failed(v1::VERDICT_COMPILE_ERROR));
  CHECK(std::get<CallModel>(c.Next()).sampling.max_tokens() == 2048);
  auto call = std::get<CallModel>(c.Next({1.0, 4096}));
  CHECK(call.sampling.max_tokens() < 2048);
  CHECK(std::get<Stop>(c.Next({8.0, 4096})).result.stop_reason() ==
        v1::STOP_REASON_CONTEXT_EXHAUSTED);
}

TEST_CASE("MakeStop ends a conversation for a reason from outside") {
  Fixture c;
  auto nothing = MakeStop(c.steps, v1::STOP_REASON_CANCELLED, "cancelled");
  REQUIRE(nothing.ok());
  CHECK(nothing->stop_reason() == v1::STOP_REASON_CANCELLED);
  CHECK(nothing->turns() == 0);
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_CRASHED));
  CHECK(MakeStop(c.steps, v1::STOP_REASON_RECORDING_ENDED, "no more")->stop_reason() ==
        v1::STOP_REASON_RECORDING_ENDED);
  c.ReplyAndJudge("v2", Fixture::PassedWithWork(10));
  auto solved = MakeStop(c.steps, v1::STOP_REASON_RECORDING_ENDED, "no more");
  CHECK(solved->stop_reason() == v1::STOP_REASON_SOLVED);
  CHECK(solved->verified());
}

TEST_CASE("Steps that are no conversation are refused") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_CRASHED));
  SECTION("a gap") { c.steps[1].set_number(2); }
  SECTION("two replies in a row") { *c.steps[1].mutable_reply() = c.steps[0].reply(); }
  auto action = NextAction(c.spec(), c.steps, c.now);
  CHECK(absl::IsDataLoss(action.status()));
}

TEST_CASE("Samples of one task get different seeds") {
  Fixture c;
  c.job.mutable_sampling()->set_seed(7);
  ConversationSpec spec = c.spec();
  spec.sample = 3;
  auto action = NextAction(spec, c.steps, c.now);
  CHECK(std::get<CallModel>(*action).sampling.seed() == 10);
}

TEST_CASE("Guidance is picked by stage, family and error, and recorded while it is in context") {
  Fixture c;
  c.job.set_guidance(true);
  std::vector<GuidanceDocument> documents;
  auto add = [&](const std::string& text) {
    documents.push_back(*ParseGuidanceDocument(text, "x.md"));
  };
  add("---\nname: start\nversion: 2\nstages: [implement]\n---\nStart with an index.\n");
  add("---\nname: other\nstages: [implement]\nfamilies: [matmul]\n---\nTiles.\n");
  add("---\nname: brace\nstages: [repair]\nerrors: ['expected .;.']\n---\nMind the semicolon.\n");
  c.guidance = GuidanceLibrary(std::move(documents));
  auto first = std::get<CallModel>(c.Next());
  CHECK(first.guidance == std::vector<std::string>{"start@2"});
  CHECK(absl::StrContains(first.messages[1].content(), "Start with an index."));
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_COMPILE_ERROR, "expected ';'"));
  auto second = std::get<CallModel>(c.Next());
  CHECK(second.guidance == std::vector<std::string>{"start@2", "brace@1"});
  CHECK(absl::StrContains(second.added[0].content(), "Mind the semicolon."));
  c.ReplyAndJudge("v2", Fixture::Failed(v1::VERDICT_COMPILE_ERROR, "expected ';'"));
  auto third = std::get<CallModel>(c.Next());
  CHECK(third.guidance == second.guidance);
  CHECK_FALSE(absl::StrContains(third.added[0].content(), "Mind the semicolon."));
}
