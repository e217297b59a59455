#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/cli/fake_services.h"
#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

struct Fixture {
  FakeCoordinator fake;
  TestHost run;

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--coordinator", fake.target()});
    return run.Run(arguments);
  }

  // A conversation of two turns: a compile error, then a pass.
  void Converse() {
    fake.jobs.Finish({{"softmax", true}, {"matmul", true}, {"matmul", true}});
    v1::ItemDetail& detail = fake.jobs.detail;
    detail.mutable_task()->set_id("softmax");
    detail.mutable_task()->set_description("rows sum to one");
    v1::ModelReply& first = *detail.add_steps()->mutable_reply();
    first.set_stage(v1::STAGE_IMPLEMENT);
    first.set_model("m");
    v1::ChatMessage& message = *first.add_added();
    message.set_role(v1::CHAT_ROLE_USER);
    message.set_content("write softmax");
    first.set_content("```cuda\nbroken\n```");
    first.set_reasoning("secret thoughts");
    v1::TurnResult& wrong = *detail.add_steps()->mutable_result();
    wrong.mutable_report()->set_verdict(v1::VERDICT_COMPILE_ERROR);
    wrong.mutable_report()->mutable_compile()->set_log("line 1: broken");
    detail.add_steps()->mutable_reply()->set_content("better");
    v1::TurnResult& right = *detail.add_steps()->mutable_result();
    right.mutable_report()->set_verdict(v1::VERDICT_PASSED);
    right.set_best(true);
  }
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "task conversation reads like a conversation") {
  Converse();
  CHECK(Run({"task", "conversation", "job-1", "0"}) == 0);
  std::string text = run.out.str();
  size_t asked = text.find("write softmax");
  size_t replied = text.find("broken\n```");
  size_t judged = text.find("turn 0, verdict COMPILE_ERROR");
  size_t log = text.find("line 1: broken");
  size_t better = text.find("turn 1, assistant");
  size_t best = text.find("best verified version");
  CHECK(asked < replied);
  CHECK(replied < judged);
  CHECK(judged < log);
  CHECK(log < better);
  CHECK(better < best);
  CHECK(best != std::string::npos);
  CHECK_FALSE(Contains(text, "secret thoughts"));
  CHECK(Run({"task", "conversation", "job-1", "0", "-o", "json"}) == 0);
  CHECK(run.Json()["steps"].size() == 4);
}

TEST_CASE_METHOD(Fixture, "A conversation can be named by its task when it is the only one") {
  Converse();
  CHECK(Run({"task", "conversation", "job-1", "softmax"}) == 0);
  CHECK(Run({"task", "conversation", "job-1", "matmul"}) == 2);
  CHECK(Contains(run.err.str(), "several conversations are about \"matmul\": 1, 2"));
  CHECK(Run({"task", "conversation", "job-1", "conv"}) == 2);
  CHECK(Run({"task", "conversation", "job-1", "99"}) == 2);
}

TEST_CASE_METHOD(Fixture, "task show prints a folder's or an item's task") {
  Converse();
  CHECK(Run({"task", "show", "job-1", "softmax"}) == 0);
  CHECK(Contains(run.out.str(), "rows sum to one"));
  CHECK(run.Run({"task", "show", EXAMPLES "/tasks/histogram"}) == 0);
  CHECK(Contains(run.out.str(), "Histogram of small integers"));
  CHECK(run.Run({"task", "show", run.temp.path() + "/none"}) == 2);
}

TEST_CASE_METHOD(Fixture, "task show tells the times of the best version, with the floor") {
  Converse();
  v1::ItemDetail& detail = fake.jobs.detail;
  for (int i = 0; i < detail.steps_size(); ++i)
    detail.mutable_steps(i)->set_number(static_cast<uint32_t>(i));
  v1::BenchmarkReport& times =
      *detail.mutable_steps(3)->mutable_result()->mutable_report()->mutable_benchmark();
  times.set_median_us(10);
  times.set_floor_us(4);
  fake.jobs.items[0].mutable_result()->set_verified(true);
  fake.jobs.items[0].mutable_result()->set_best_step(3);
  CHECK(Run({"task", "show", "job-1", "0"}) == 0);
  CHECK(Contains(run.out.str(),
                 "  times     median 10.0 us (10% 0.0, 90% 0.0, 0 samples), floor 4.0 us\n"));
  fake.jobs.items[0].mutable_result()->set_best_step(1);
  CHECK(Run({"task", "show", "job-1", "0"}) == 0);
  CHECK_FALSE(Contains(run.out.str(), "  times  "));
}

TEST_CASE_METHOD(Fixture, "task lint passes a task of which only the reference itself passes") {
  WriteTask(run.temp.path() + "/t", "t");
  fake.score.judge = [](const v1::ScoreRequest& request) {
    v1::EvaluationReport report;
    bool self = request.id().find("the reference itself") != std::string::npos;
    report.set_verdict(self ? v1::VERDICT_PASSED : v1::VERDICT_WRONG_OUTPUT);
    return report;
  };
  CHECK(Run({"task", "lint", run.temp.path() + "/t"}) == 0);
  CHECK(Contains(run.out.str(), ": ok"));
}

TEST_CASE_METHOD(Fixture, "task lint names every solution that must not pass and does") {
  WriteTask(run.temp.path() + "/t", "t");
  fake.score.judge = [](const v1::ScoreRequest& request) {
    v1::EvaluationReport report;
    bool passes = request.id().find("the reference itself") != std::string::npos ||
                  request.id().find("zeros") != std::string::npos ||
                  request.id().find("input 1") != std::string::npos;
    report.set_verdict(passes ? v1::VERDICT_PASSED : v1::VERDICT_WRONG_OUTPUT);
    return report;
  };
  CHECK(Run({"task", "lint", run.temp.path() + "/t", "-o", "json"}) == 1);
  std::vector<std::string> findings = run.Json()[0]["findings"];
  std::sort(findings.begin(), findings.end());
  CHECK(findings == std::vector<std::string>{
                        "all zeros pass as a solution",
                        "input 1 does not matter: other values in it give the same answer"});
}

TEST_CASE_METHOD(Fixture, "task lint tells a reference that does not run once, with its error") {
  WriteTask(run.temp.path() + "/t", "t");
  fake.score.judge = [](const v1::ScoreRequest&) {
    v1::EvaluationReport report;
    report.set_verdict(v1::VERDICT_INVALID_TASK);
    report.set_reason("NameError: name 'torhc' is not defined");
    return report;
  };
  CHECK(Run({"task", "lint", run.temp.path() + "/t"}) == 1);
  CHECK(Contains(run.out.str(), "the reference does not run: NameError"));
  CHECK(run.out.str().find("NameError") == run.out.str().rfind("NameError"));
}

TEST_CASE_METHOD(Fixture, "task lint blames a failed machine on nobody") {
  WriteTask(run.temp.path() + "/t", "t");
  fake.score.judge = [](const v1::ScoreRequest&) {
    v1::EvaluationReport report;
    report.set_verdict(v1::VERDICT_INFRASTRUCTURE);
    report.set_reason("disk is full");
    return report;
  };
  CHECK(Run({"task", "lint", run.temp.path() + "/t"}) == 3);
  CHECK(Contains(run.err.str(), "disk is full"));
}

TEST_CASE_METHOD(Fixture, "task lint --static looks at files only") {
  CHECK(run.Run({"task", "lint", "--static", EXAMPLES "/tasks/matmul", EXAMPLES "/tasks/conv2d"}) ==
        0);
  WriteFile(run.temp.path() + "/t/task.yaml", "id: x\n");
  CHECK(run.Run({"task", "lint", "--static", run.temp.path() + "/t"}) == 2);
  CHECK(Contains(run.err.str(), "title: is required"));
}
