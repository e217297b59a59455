#include "agent_runner/agent/feedback.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/agent/conversation_fixture.h"
#include "tests/unit/agent/golden.h"

using namespace kmosaic;  // NOLINT: tests
using Fixture = ConversationFixture;

namespace {

v1::EvaluationReport WrongOutput() {
  v1::EvaluationReport report = Fixture::Failed(v1::VERDICT_WRONG_OUTPUT, "seed 91 differs");
  v1::VerifyReport& verify = *report.mutable_verify();
  verify.add_seeds(987654321);
  v1::Mismatch& mismatch = *verify.mutable_mismatch();
  mismatch.add_index(3);
  mismatch.add_index(17);
  mismatch.set_expected(0.25);
  mismatch.set_got(-1.5);
  mismatch.set_tolerance(1e-5);
  mismatch.set_wrong_elements(120);
  mismatch.set_elements(1000);
  mismatch.set_max_error(1.75);
  mismatch.set_pattern("tail from index 880");
  mismatch.set_family("hidden_denormals");
  return report;
}

std::vector<v1::Verdict> AllVerdicts() {
  std::vector<v1::Verdict> verdicts;
  const auto* type = v1::Verdict_descriptor();
  for (int i = 0; i < type->value_count(); ++i) {
    verdicts.push_back(static_cast<v1::Verdict>(type->value(i)->number()));
  }
  return verdicts;
}

}  // namespace

TEST_CASE("Feedback for every verdict") {
  std::string text;
  for (v1::Verdict verdict : AllVerdicts()) {
    v1::EvaluationReport report = Fixture::Failed(verdict, "REASON");
    report.mutable_compile()->set_log("kernel.cu(3): error: expected a \";\"\n");
    report.set_output("last line printed\n");
    absl::StrAppend(&text, "=== ", VerdictName(verdict), "\n", VerdictFeedback(report), "\n");
  }
  CheckGolden("feedback_all_verdicts", text);
}

TEST_CASE("Every verdict about a candidate has feedback, the others have none") {
  for (v1::Verdict verdict : AllVerdicts()) {
    bool about_candidate = verdict != v1::VERDICT_UNSPECIFIED &&
                           verdict != v1::VERDICT_INFRASTRUCTURE &&
                           verdict != v1::VERDICT_INVALID_TASK;
    INFO(VerdictName(verdict));
    CHECK(VerdictFeedback(Fixture::Failed(verdict)).empty() != about_candidate);
  }
}

TEST_CASE("A mismatch under a public seed is shown exactly") {
  v1::EvaluationReport report = WrongOutput();
  report.mutable_verify()->mutable_mismatch()->set_public_seed(2);
  report.mutable_verify()->mutable_mismatch()->set_family("normal");
  CheckGolden("feedback_public_mismatch", VerdictFeedback(report));
}

TEST_CASE("Secret seeds, their family, place and values are never named") {
  std::string text = VerdictFeedback(WrongOutput());
  CheckGolden("feedback_secret_mismatch", text);
  for (const char* secret : {"987654321", "hidden_denormals", "[3, 17]", "0.25", "-1.5", "91"}) {
    CHECK_FALSE(absl::StrContains(text, secret));
  }
}

TEST_CASE("Long logs and outputs are cut") {
  v1::EvaluationReport report = Fixture::Failed(v1::VERDICT_COMPILE_ERROR, "");
  report.mutable_compile()->set_log(std::string(100'000, 'e'));
  CHECK(VerdictFeedback(report).size() < 5000);
  report = Fixture::Failed(v1::VERDICT_RUNTIME_ERROR, std::string(100'000, 'r'));
  report.set_output(std::string(100'000, 'o'));
  CHECK(VerdictFeedback(report).size() < 5000);
}

TEST_CASE("Time is told against baseline and floor, counted work is called so") {
  CheckGolden("feedback_optimise_time", OptimiseFeedback(Fixture::PassedWithTime(41.3, 80, 20.5)));
  v1::EvaluationReport report = Fixture::PassedWithWork(1234.5);
  report.mutable_work()->set_global_load_bytes(4096);
  CheckGolden("feedback_optimise_work", OptimiseFeedback(report));
  CHECK(MeasureText(Fixture::Failed(v1::VERDICT_PASSED)).empty());
}

TEST_CASE("A rollback shows what happened and the version to go on from") {
  v1::TurnResult best;
  best.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
  best.mutable_solution()->set_source("class ModelNew: ...\n");
  *best.mutable_report() = Fixture::PassedWithWork(100);
  CheckGolden("feedback_rollback_slower", RollbackFeedback(Fixture::PassedWithWork(140), best));
  CheckGolden("feedback_rollback_broken",
              RollbackFeedback(Fixture::Failed(v1::VERDICT_ILLEGAL_ACCESS, "read at 4096"), best));
}

TEST_CASE("Replies without a version and resubmissions are told what to do") {
  EntryPoint cuda{v1::CONTRACT_CUDA, "twice"};
  std::string text;
  for (NoVersion kind : {NoVersion::kTruncated, NoVersion::kNoEntryPoint, NoVersion::kUnfenced,
                         NoVersion::kNoCode, NoVersion::kEmpty, NoVersion::kDegenerate}) {
    absl::StrAppend(&text, "=== ", NoVersionName(kind), "\n",
                    NoVersionFeedback(kind, "", {cuda}, 2048));
  }
  CheckGolden("feedback_no_version", text);
  text.clear();
  for (NoVersion kind : {NoVersion::kTruncated, NoVersion::kNoEntryPoint, NoVersion::kNoCode,
                         NoVersion::kEmpty, NoVersion::kBadToolCall}) {
    absl::StrAppend(
        &text, "=== ", NoVersionName(kind), "\n",
        NoVersionFeedback(kind, "bad_tool_call: there is no tool named 'run'", {cuda, true}, 2048));
  }
  CheckGolden("feedback_no_version_tools", text);
  CheckGolden("feedback_resubmission",
              ResubmissionFeedback(2, Fixture::Failed(v1::VERDICT_WRONG_SHAPE, "(3) is not (4)")));
}
