#include <catch2/catch.hpp>

#include "cli/program/connection.h"
#include "cli/program/exit_code.h"
#include "cli/program/up_record.h"
#include "tests/unit/cli/fake_services.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

TEST_CASE("Statuses map to the documented exit codes") {
  CHECK(ExitCodeFor(absl::OkStatus()) == 0);
  CHECK(ExitCodeFor(absl::InvalidArgumentError("")) == 2);
  CHECK(ExitCodeFor(absl::NotFoundError("")) == 2);
  CHECK(ExitCodeFor(absl::AlreadyExistsError("")) == 2);
  CHECK(ExitCodeFor(absl::UnavailableError("")) == 3);
  CHECK(ExitCodeFor(absl::FailedPreconditionError("")) == 3);
  CHECK(ExitCodeFor(absl::PermissionDeniedError("")) == 3);
  CHECK(ExitCodeFor(absl::ResourceExhaustedError("")) == 3);
}

TEST_CASE("Bad usage is exit code 2, help and version are 0") {
  TestHost test;
  CHECK(test.Run({}) == 2);
  CHECK(test.Run({"fly"}) == 2);
  CHECK(test.Run({"job", "list", "--no-such-flag"}) == 2);
  CHECK(test.Run({"job", "show"}) == 2);
  CHECK(test.Run({"-o", "xml", "job", "list"}) == 2);
  CHECK(test.Run({"export", "job-1", "--out", "x", "--format", "parquet"}) == 2);
  CHECK(test.Run({"--help"}) == 0);
  CHECK(test.out.str().find("submit") != std::string::npos);
  CHECK(test.Run({"score", "--help"}) == 0);
  CHECK(test.Run({"--version"}) == 0);
  CHECK(test.out.str().rfind("kmosaic ", 0) == 0);
}

TEST_CASE("A coordinator that is not there is exit code 3 and the address tried") {
  TestHost test;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"job", "list"},
        {"job", "show", "x"},
        {"health"},
        {"worker", "list"},
        {"task", "conversation", "j", "0"},
        {"export", "x", "--out", test.temp.path() + "/o"}}) {
    std::vector<std::string> arguments = {"--coordinator", "127.0.0.1:1"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    INFO(command[0]);
    CHECK(test.Run(arguments) == 3);
    CHECK(test.err.str().find(
              "cannot reach the coordinator at 127.0.0.1:1 (named by --coordinator)") !=
          std::string::npos);
    CHECK(test.out.str().empty());
  }
}

TEST_CASE("Without any address the message says where it was looked for") {
  TestHost test;
  CHECK(test.Run({"job", "list"}) == 3);
  CHECK(test.err.str().find(test.temp.path() + "/run/kmosaic") != std::string::npos);
  CHECK(test.err.str().find("kmosaic up") != std::string::npos);
}

TEST_CASE("The flag wins over the environment, which wins over a running up") {
  TestHost test;
  auto record =
      PublishedUpRecord::Publish(UpRecordDirectory(test.host), {5, "127.0.0.1:3", "", "/d"});
  REQUIRE(record.ok());
  auto found = FindCoordinator(test.host, "");
  REQUIRE(found.ok());
  CHECK(found->target == "127.0.0.1:3");
  CHECK(found->named_by == "kmosaic up (process 5)");
  test.host.env["KMOSAIC_COORDINATOR"] = "127.0.0.1:2";
  CHECK(FindCoordinator(test.host, "")->target == "127.0.0.1:2");
  CHECK(FindCoordinator(test.host, "127.0.0.1:1")->target == "127.0.0.1:1");
}

TEST_CASE("With several running the user has to choose") {
  TestHost test;
  auto one = PublishedUpRecord::Publish(UpRecordDirectory(test.host), {5, "127.0.0.1:3", "", "/a"});
  auto two = PublishedUpRecord::Publish(UpRecordDirectory(test.host), {6, "127.0.0.1:4", "", "/b"});
  CHECK(test.Run({"job", "list"}) == 2);
  CHECK(test.err.str().find("127.0.0.1:3") != std::string::npos);
  CHECK(test.err.str().find("127.0.0.1:4") != std::string::npos);
}

TEST_CASE("Global options may stand before or after the command") {
  FakeCoordinator fake;
  fake.jobs.Finish({{"a", true}});
  TestHost test;
  CHECK(test.Run({"--coordinator", fake.target(), "-o", "json", "job", "list"}) == 0);
  std::string before = test.out.str();
  CHECK(test.Run({"job", "list", "-o", "json", "--coordinator=" + fake.target()}) == 0);
  CHECK(test.out.str() == before);
}

TEST_CASE("An interrupted command is exit code 4") {
  FakeCoordinator fake;
  fake.jobs.Finish({{"a", true}});
  TestHost test;
  test.interrupt.Trigger();
  CHECK(test.Run({"--coordinator", fake.target(), "job", "list"}) == 4);
  CHECK(test.Run({"--coordinator", fake.target(), "job", "watch", "job-1"}) == 4);
}

TEST_CASE("An interrupt runs the callbacks of living scopes only") {
  Interrupt interrupt;
  int ran = 0;
  {
    Interrupt::Scope gone(interrupt, [&] { ran += 100; });
  }
  Interrupt::Scope scope(interrupt, [&] { ++ran; });
  interrupt.Trigger();
  CHECK(ran == 1);
  Interrupt::Scope late(interrupt, [&] { ran += 10; });
  CHECK(ran == 11);
  CHECK(interrupt.WaitFor(absl::Hours(1)));
}
