// Ends that come from the job and from other samples, and what samples differ in.
#include "agent_runner/agent/stop_rules.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/agent/conversation_fixture.h"

using namespace kmosaic;  // NOLINT: tests
using Fixture = ConversationFixture;

TEST_CASE("A job's budget ends its conversations, before their first call too") {
  Fixture c;
  SECTION("money") {
    c.job.mutable_job_budget()->set_cost_usd(5);
    c.standing.usage.set_cost_usd(4.9);
    CHECK_FALSE(c.Ends());
    c.standing.usage.set_cost_usd(5);
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_COST_BUDGET);
    CHECK(absl::StrContains(c.Ended().reason(), "the job's 5 USD"));
  }
  SECTION("tokens") {
    c.job.mutable_job_budget()->set_tokens(1000);
    c.standing.usage.set_prompt_tokens(900);
    c.standing.usage.set_completion_tokens(99);
    CHECK_FALSE(c.Ends());
    c.standing.usage.set_completion_tokens(100);
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TOKEN_BUDGET);
  }
  SECTION("time since the submission") {
    c.job.mutable_job_budget()->mutable_time()->set_seconds(3600);
    CHECK_FALSE(c.Ends());
    c.standing.created = c.now - absl::Minutes(59);
    CHECK_FALSE(c.Ends());
    c.standing.created = c.now - absl::Minutes(60);
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_TIME_BUDGET);
  }
  CHECK(c.Ended().turns() == 0);
}

TEST_CASE("A version that is verified when the job's budget ends is kept") {
  Fixture c;
  c.job.mutable_job_budget()->set_cost_usd(1);
  c.ReplyAndJudge("v1", Fixture::PassedWithWork(100));
  c.standing.usage.set_cost_usd(2);
  CHECK(c.Ended().stop_reason() == v1::STOP_REASON_COST_BUDGET);
  CHECK(c.Ended().verified());
}

TEST_CASE("Once enough samples are verified the others end, unless they are verified themselves") {
  Fixture c;
  c.job.set_enough_verified(2);
  c.standing.verified_samples = 1;
  CHECK_FALSE(c.Ends());
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_WRONG_OUTPUT));
  CHECK_FALSE(c.Ends());
  SECTION("not verified yet") {
    c.standing.verified_samples = 2;
    CHECK(c.Ended().stop_reason() == v1::STOP_REASON_ENOUGH_VERIFIED);
    CHECK_FALSE(c.Ended().verified());
  }
  SECTION("verified: it goes on to optimise") {
    c.ReplyAndJudge("v2", Fixture::PassedWithWork(100));
    c.standing.verified_samples = 2;
    CHECK(std::get<CallModel>(c.Next()).stage == v1::STAGE_OPTIMISE);
  }
}

TEST_CASE("Samples take their temperatures in turn") {
  Fixture c;
  c.job.mutable_sampling()->add_temperatures(0.2);
  c.job.mutable_sampling()->add_temperatures(1.0);
  ConversationSpec spec = c.spec();
  for (uint32_t sample : {0u, 1u, 2u}) {
    spec.sample = sample;
    auto action = NextAction(spec, c.steps, c.now);
    const v1::Sampling& sampling = std::get<CallModel>(*action).sampling;
    CHECK(sampling.temperature() == (sample == 1 ? 1.0 : 0.2));
    CHECK(sampling.temperatures().empty());
  }
}

TEST_CASE("A version that differs in comments alone is the same version") {
  Fixture c;
  c.ReplyAndJudge("v1", Fixture::Failed(v1::VERDICT_WRONG_SHAPE));
  c.Reply("```python\n# A new try.\n" + Fixture::Source("v1") + "\n```\n");
  CHECK(std::get<RecordResult>(c.Next()).result.report().verdict() == v1::VERDICT_WRONG_SHAPE);
}

TEST_CASE("What a trimmed call has left out is recorded") {
  Fixture c;
  c.job.mutable_budget()->set_context_tokens(4500);
  c.job.mutable_budget()->set_turns(20);
  for (int i = 0; i < 4; ++i) {
    c.ReplyAndJudge("version " + std::to_string(i) + std::string(2400, 'x'),
                    Fixture::Failed(v1::VERDICT_COMPILE_ERROR));
  }
  auto call = std::get<CallModel>(c.Next());
  CHECK_FALSE(call.left_out.empty());
  CHECK(call.left_out.size() + call.messages.size() / 2 - 1 == 4);
  CHECK(call.left_out.front() == 0);
}

TEST_CASE("A trial withholds each document from one of two neighbouring samples, and says so") {
  Fixture c;
  c.job.set_guidance(true);
  c.job.set_guidance_trial(true);
  std::vector<GuidanceDocument> documents;
  for (const char* name : {"a", "b", "c"}) {
    documents.push_back(*ParseGuidanceDocument(
        std::string("---\nname: ") + name + "\nstages: [implement]\n---\nText " + name + ".\n",
        "x.md"));
  }
  c.guidance = GuidanceLibrary(std::move(documents));
  ConversationSpec spec = c.spec();
  std::vector<std::string> seen;
  for (uint32_t sample : {0u, 1u}) {
    spec.sample = sample;
    auto action = NextAction(spec, c.steps, c.now);
    const auto& call = std::get<CallModel>(*action);
    CHECK(call.guidance.size() + call.guidance_withheld.size() == 3);
    for (const std::string& id : call.guidance) {
      CHECK(absl::StrContains(call.messages[1].content(), "Text " + id.substr(0, 1)));
      seen.push_back(id);
    }
    for (const std::string& id : call.guidance_withheld) {
      CHECK_FALSE(absl::StrContains(call.messages[1].content(), "Text " + id.substr(0, 1)));
    }
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen == std::vector<std::string>{"a@1", "b@1", "c@1"});
}
