#include "cli/score/score_row.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "cli/score/score_report.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

std::string ProblemOf(const std::string& line) {
  Problems problems;
  CHECK_FALSE(ParseScoreRow(line, {"f.jsonl", 3}, problems));
  return problems.empty() ? "" : problems.lines()[0];
}

std::optional<ScoreRow> Parse(const std::string& line) {
  Problems problems;
  auto row = ParseScoreRow(line, {"f.jsonl", 3}, problems);
  INFO((problems.empty() ? "" : problems.lines()[0]));
  CHECK(row);
  return row;
}

std::string LabelOf(const std::string& label) {
  return Parse("{\"reference\": \"r\", \"solution\": \"s\", \"label\": " + label + "}")->label;
}

}  // namespace

TEST_CASE("A row needs a reference and a solution; other keys are its author's") {
  auto row = Parse(
      "{\"id\": \"a\", \"reference\": \"r\", \"solution\": \"s\", \"licence\": \"MIT\", \"level\": "
      "1}");
  REQUIRE(row);
  CHECK(row->id == "a");
  CHECK(row->label.empty());
  CHECK(row->request.oracle().reference() == "r");
  CHECK(row->request.solution().source() == "s");
  CHECK(row->request.solution().contract() == v1::CONTRACT_MODELNEW);
  CHECK(Parse("{\"reference\": \"r\", \"solution\": \"s\"}")->id == "line-3");
  CHECK(Parse("{\"id\": 7, \"reference\": \"r\", \"solution\": \"s\"}")->id == "7");
}

TEST_CASE("Labels of KernelBench's kind become words") {
  CHECK(LabelOf("{\"compiled\": true, \"correct\": true, \"runtime_ms\": 1.5}") == "correct");
  CHECK(LabelOf("{\"compiled\": true, \"correct\": false}") == "incorrect");
  CHECK(LabelOf("{\"compiled\": false, \"correct\": false}") == "does not compile");
  CHECK(LabelOf("true") == "correct");
  CHECK(LabelOf("\"slow\"") == "slow");
  CHECK(LabelOf("null").empty());
  CHECK(LabelOf("{}").empty());
}

TEST_CASE("A cuda row carries its entry") {
  auto row = Parse(
      "{\"reference\": \"r\", \"solution\": \"s\", \"contract\": \"cuda\", \"entry\": "
      "{\"prototype\": "
      "\"void f(const float* x, float* y)\", \"bindings\": {\"x\": \"input[0]\", \"y\": "
      "\"output[0]\"}}, "
      "\"scaled_shapes\": {\"n\": 5}, \"mutable_inputs\": [1], \"reduced_precision\": true}");
  REQUIRE(row);
  CHECK(row->request.solution().contract() == v1::CONTRACT_CUDA);
  CHECK(row->request.oracle().entry().bindings().at("y") == "output[0]");
  CHECK(row->request.oracle().scaled_shapes().at("n") == 5);
  CHECK(row->request.oracle().mutable_inputs(0) == 1);
  CHECK(row->request.oracle().reduced_precision());
}

TEST_CASE("Bad rows are told with file, line and what was expected") {
  CHECK(ProblemOf("{\"reference\": \"r\"") == "f.jsonl:3:18: this is not JSON");
  CHECK(ProblemOf("[]") == "f.jsonl:3: expected a JSON object, found array");
  CHECK(ProblemOf("{\"reference\": \"r\"}") ==
        "f.jsonl:3: \"solution\" is required and must be the text of a program");
  CHECK(ProblemOf("{\"reference\": 1, \"solution\": \"s\"}") ==
        "f.jsonl:3: \"reference\" is required and must be the text of a program");
  CHECK(ProblemOf("{\"reference\": \"r\", \"solution\": \"s\", \"contract\": \"ptx\"}") ==
        "f.jsonl:3: \"contract\" must be \"modelnew\" or \"cuda\"");
  CHECK(ProblemOf("{\"reference\": \"r\", \"solution\": \"s\", \"id\": []}") ==
        "f.jsonl:3: \"id\" must be text");
  CHECK(ProblemOf("{\"reference\": \"r\", \"solution\": \"s\", \"scaled_shapes\": {\"n\": 0}}") ==
        "f.jsonl:3: \"scaled_shapes\" must map names to integers of at least 1");
  CHECK(ProblemOf("{\"reference\": \"\xff\"}") == "f.jsonl:3: is not UTF-8");
  CHECK(ProblemOf("{\"reference\": \"r\", \"solution\": \"s\", \"contract\": \"cuda\"}")
            .rfind("f.jsonl:3: a cuda solution needs \"entry\"", 0) == 0);
}

TEST_CASE("A file gives its good rows and counts what is left") {
  std::string good = "{\"reference\": \"r\", \"solution\": \"s\"}\n";
  std::istringstream input(good + "\nnonsense\n" + good + good);
  CHECK(CountRows(input, 0) == 4);
  CHECK(CountRows(input, 3) == 3);
  Problems problems;
  ScoreFile file(input, "f", 0);
  CHECK(file.Next(problems)->id == "line-1");
  CHECK(file.Next(problems)->id == "line-4");
  CHECK(problems.lines()[0].rfind("f:3:", 0) == 0);
  CHECK(file.Next(problems)->id == "line-5");
  CHECK_FALSE(file.Next(problems));
  std::istringstream again(good + good);
  ScoreFile limited(again, "f", 1);
  CHECK(limited.Next(problems));
  CHECK_FALSE(limited.Next(problems));
}

TEST_CASE("The tally counts verdicts, by label too") {
  ScoreTally tally;
  v1::EvaluationReport report;
  auto add = [&](v1::Verdict verdict, const std::string& label) {
    report.set_verdict(verdict);
    tally.Add(label, report);
  };
  add(v1::VERDICT_WRONG_OUTPUT, "incorrect");
  add(v1::VERDICT_PASSED, "correct");
  add(v1::VERDICT_PASSED, "incorrect");
  add(v1::VERDICT_UNSUPPORTED, "");
  add(v1::VERDICT_WRONG_OUTPUT, "incorrect");
  CHECK(tally.total() == 5);
  CHECK_FALSE(tally.all_passed());
  TestHost test;
  CHECK(tally.Tables(test.host) ==
        "VERDICT       CANDIDATES  LABELLED correct  LABELLED incorrect\n"
        "PASSED                 2                 1                   1\n"
        "WRONG_OUTPUT           2                 -                   2\n"
        "UNSUPPORTED            1                 -                   -\n");
  CHECK(tally.Summary(absl::Seconds(60)) ==
        "5 candidates in 1m00s (5.0/min): 2 passed, 2 failed, 1 without a verdict about them\n");
  CHECK(tally.ToJson(absl::Seconds(60))["by_label"]["incorrect"]["WRONG_OUTPUT"] == 2);
}
