#include <catch2/catch.hpp>

#include "tests/unit/cli/fake_services.h"
#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

struct Fixture {
  FakeCoordinator fake;
  TestHost run;
  std::string file;

  Fixture() {
    std::string dir = run.temp.path();
    WriteTask(dir + "/tasks/one", "one");
    WriteTask(dir + "/tasks/two", "two");
    WriteFile(dir + "/rec.jsonl",
              "{\"task\": \"one\", \"turn\": 0, \"content\": \"x\"}\n"
              "{\"task\": \"two\", \"turn\": 0, \"content\": \"x\"}\n");
    file = dir + "/job.yaml";
    WriteFile(file,
              "kind: generate\ntasks: [tasks/*]\nviews: [[spec]]\n"
              "endpoint: {kind: replay, recordings: rec.jsonl}\n");
  }

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--coordinator", fake.target()});
    return run.Run(arguments);
  }
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "submit sends the job and its tasks under a request id") {
  fake.jobs.Finish({{"one", true}, {"two", true}});
  CHECK(Run({"submit", file, "--set", "samples=2", "--request-id", "r-1"}) == 0);
  CHECK(Contains(run.out.str(), "submitted: job-1"));
  REQUIRE(fake.jobs.tasks.size() == 2);
  CHECK(fake.jobs.tasks[1].id() == "two");
  CHECK(fake.jobs.total_tasks == 2);
  CHECK(fake.jobs.tasks[1].oracle().reference() == kReference);
  CHECK(fake.jobs.request_ids == std::vector<std::string>{"r-1"});
  CHECK(fake.jobs.job.spec().samples() == 2);
}

TEST_CASE_METHOD(Fixture, "A submission that was cut is sent again under the same id") {
  fake.jobs.Finish({{"one", true}});
  fake.jobs.submit_failures = 2;
  CHECK(Run({"submit", file}) == 0);
  REQUIRE(fake.jobs.request_ids.size() == 1);
  CHECK_FALSE(fake.jobs.request_ids[0].empty());
}

TEST_CASE_METHOD(Fixture, "With a problem in any file nothing is submitted") {
  WriteFile(run.temp.path() + "/tasks/two/task.yaml", "id: two\ntitle: t\nfamily: f\nlevle: 1\n");
  CHECK(Run({"submit", file}) == 2);
  CHECK(Contains(run.err.str(),
                 "tasks/two/task.yaml:4:1: unknown key \"levle\"; did you mean \"level\"?"));
  CHECK(Contains(run.err.str(), "1 problem; nothing was submitted"));
  CHECK(fake.jobs.request_ids.empty());
}

TEST_CASE_METHOD(Fixture, "submit --dry-run checks everything and needs no service") {
  CHECK(run.Run({"submit", file, "--dry-run"}) == 0);
  CHECK(Contains(run.out.str(), "2 tasks, 2 conversations; nothing was submitted"));
  CHECK(Contains(run.out.str(), "replies  20"));
  CHECK(run.Run({"submit", file, "--dry-run", "-o", "json"}) == 0);
  CHECK(run.Json()["conversations"].size() == 2);
  CHECK(fake.jobs.request_ids.empty());
}

TEST_CASE_METHOD(Fixture,
                 "submit --wait ends with the table; exit code 1 when not all are verified") {
  fake.jobs.Finish({{"one", true}, {"two", false}});
  CHECK(Run({"submit", file, "--wait"}) == 1);
  CHECK(Contains(run.err.str(), "submitted: job-1"));
  CHECK(Contains(run.out.str(), "2 conversations: 1 verified, 1 not"));
}

TEST_CASE_METHOD(Fixture,
                 "submit --wait is exit code 0 when all are verified, and its JSON is one value") {
  fake.jobs.Finish({{"one", true}, {"two", true}});
  CHECK(Run({"submit", file, "--wait", "-o", "json"}) == 0);
  CHECK(run.Json()["job"]["id"] == "job-1");
  CHECK(run.Json()["items"].size() == 2);
}

TEST_CASE_METHOD(Fixture, "A job file that is not there is bad input") {
  CHECK(Run({"submit", "/nowhere/job.yaml"}) == 2);
  CHECK(Contains(run.err.str(), "/nowhere/job.yaml: there is no such file"));
}

TEST_CASE_METHOD(Fixture, "submit --local says which program it misses") {
  run.host.env["PATH"] = "";
  CHECK(run.Run({"submit", file, "--local"}) == 2);
  CHECK(Contains(run.err.str(), "there is no kmosaic-coordinator beside this program"));
}
