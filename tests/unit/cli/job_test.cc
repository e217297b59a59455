#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/unit/cli/fake_services.h"
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
  std::string out() const { return run.out.str(); }
};

int64_t LinesIn(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "job list shows every page") {
  fake.jobs.Finish({{"softmax", true}, {"matmul", false}});
  REQUIRE(Run({"job", "list"}) == 0);
  CHECK(Contains(out(), "job-1"));
  CHECK(Contains(out(), "job-second"));
  CHECK(Contains(out(), "2/2"));
  REQUIRE(Run({"job", "list", "-o", "json"}) == 0);
  CHECK(run.Json().size() == 2);
  CHECK(run.Json()[0]["state"] == "finished");
  REQUIRE(Run({"job", "list", "-o", "jsonl"}) == 0);
  CHECK(LinesIn(run.out.str()) == 2);
}

TEST_CASE_METHOD(Fixture, "job show prints the job and its conversations") {
  fake.jobs.Finish({{"softmax", true}, {"matmul", false}});
  REQUIRE(Run({"job", "show", "job-1"}) == 0);
  CHECK(Contains(out(), "1 verified, 1 ended without"));
  CHECK(Contains(out(), "WRONG_OUTPUT"));
  CHECK(Contains(out(), "turn_budget"));
  CHECK(Contains(out(), "one element is off"));
  REQUIRE(Run({"job", "show", "job-1", "-o", "json"}) == 0);
  CHECK(run.Json()["items"].size() == 2);
  CHECK(run.Json()["items"][0]["result"]["speedup"].is_null());
}

TEST_CASE_METHOD(Fixture, "A job's JSON leaves out the text of the recordings") {
  fake.jobs.Finish({{"softmax", true}});
  fake.jobs.job.mutable_spec()->mutable_endpoint()->set_recordings("0123456789");
  REQUIRE(Run({"job", "show", "job-1", "-o", "json"}) == 0);
  CHECK_FALSE(Contains(out(), "0123456789"));
  CHECK(run.Json()["spec"]["endpoint"]["recordings_bytes"] == 10);
}

TEST_CASE_METHOD(Fixture, "A job that is not there is bad input") {
  fake.jobs.Finish({{"softmax", true}});
  CHECK(Run({"job", "show", "job-none"}) == 2);
  CHECK(Contains(run.err.str(), "there is no job job-none"));
  CHECK(Run({"job", "watch", "job-none"}) == 2);
  CHECK(Run({"job", "pause", "job-1", "job-none"}) == 2);
  CHECK(Contains(out(), "job-1 is paused (paused)"));
}

TEST_CASE_METHOD(Fixture, "What the service refuses is exit code 3 with its reason") {
  fake.jobs.Finish({{"softmax", true}});
  CHECK(Run({"job", "delete", "job-1"}) == 3);
  CHECK(Contains(run.err.str(), "2 conversations are running"));
}

TEST_CASE_METHOD(Fixture, "job retry sends the states asked for") {
  CHECK(Run({"job", "retry", "job-1", "--state", "failed", "--state", "cancelled"}) == 0);
  CHECK(Contains(out(), "12 conversations are ready again"));
  CHECK(Run({"job", "retry", "job-1", "--state", "leased"}) == 2);
}

TEST_CASE_METHOD(Fixture, "job watch ends with the table, and says no when not all are verified") {
  fake.jobs.Finish({{"softmax", true}, {"matmul", false}});
  CHECK(Run({"job", "watch", "job-1"}) == 1);
  CHECK(Contains(out(), "2 conversations: 1 verified, 1 not; 6 turns, 2.00k tokens"));
  CHECK(Contains(out(), "0.50 of work"));
  CHECK(Contains(out(), "no time and no speedup"));
}

TEST_CASE_METHOD(Fixture, "job watch goes on where a lost connection ended") {
  fake.jobs.Finish({{"softmax", true}, {"matmul", true}});
  fake.jobs.watch_cuts = 1;
  CHECK(Run({"job", "watch", "job-1", "-o", "jsonl"}) == 0);
  CHECK(fake.jobs.watched_from == std::vector<uint64_t>{0, 2});
  std::istringstream lines(out());
  std::string line;
  uint64_t expected = 1;
  while (std::getline(lines, line)) CHECK(nlohmann::json::parse(line)["seq"] == expected++);
  CHECK(expected == 4);
}

TEST_CASE_METHOD(Fixture, "job watch --events begins where it is told") {
  fake.jobs.Finish({{"softmax", true}, {"matmul", true}});
  CHECK(Run({"job", "watch", "job-1", "--events", "--from-seq", "2"}) == 0);
  CHECK(LinesIn(run.out.str()) == 2);
  CHECK(Contains(out(), "1 matmul  leased -> done"));
  CHECK(Contains(out(), "job finished"));
}
