#include "common/lifecycle/child_process.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <fstream>
#include <sstream>

#include "common/lifecycle/ready_line.h"
#include "testing/temp_dir.h"

namespace kmosaic {

TEST_CASE("a child's lines and exit code are seen") {
  auto child = ChildProcess::Start(
      {.argv = {"sh", "-c", "echo one; echo two; exit 3"}, .pipe_stdout = true});
  REQUIRE(child.ok());
  CHECK(child->ReadLine(absl::Seconds(20)).value() == "one");
  CHECK(child->ReadLine(absl::Seconds(20)).value() == "two");
  CHECK(absl::IsUnavailable(child->ReadLine(absl::Seconds(20)).status()));
  CHECK(child->Wait(absl::Seconds(20)) == 3);
}

TEST_CASE("a program that does not exist is named") {
  auto child = ChildProcess::Start({.argv = {"/no/such/program"}});
  REQUIRE(absl::IsNotFound(child.status()));
  CHECK(child.status().message().find("/no/such/program") != std::string::npos);
}

TEST_CASE("a cleared environment holds only what is given") {
  setenv("KMOSAIC_CANARY", "secret", 1);
  auto child = ChildProcess::Start(
      {.argv = {"/usr/bin/env"}, .env = {{"GIVEN", "1"}}, .clear_env = true, .pipe_stdout = true});
  unsetenv("KMOSAIC_CANARY");
  REQUIRE(child.ok());
  CHECK(child->ReadLine(absl::Seconds(20)).value() == "GIVEN=1");
  CHECK(absl::IsUnavailable(child->ReadLine(absl::Seconds(20)).status()));
}

TEST_CASE("a signal ends it, and the exit says which") {
  auto child = ChildProcess::Start({.argv = {"sleep", "600"}});
  REQUIRE(child.ok());
  CHECK_FALSE(child->Poll().has_value());
  child->Signal(SIGKILL);
  CHECK(child->Wait(absl::Seconds(20)) == 128 + SIGKILL);
}

TEST_CASE("waiting without a deadline does not spin") {
  ChildProcess::Options options;
  options.argv = {"sh", "-c", "sleep 0.4"};
  auto child = ChildProcess::Start(options);
  REQUIRE(child.ok());
  std::clock_t before = std::clock();
  CHECK(child->Wait(absl::InfiniteDuration()) == 0);
  CHECK(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC < 0.1);
}

TEST_CASE("dropping a child kills it") {
  pid_t pid = 0;
  {
    auto child = ChildProcess::Start({.argv = {"sleep", "600"}});
    REQUIRE(child.ok());
    pid = child->pid();
  }
  CHECK(kill(pid, 0) == -1);
}

TEST_CASE("standard error goes to the file") {
  TempDir dir;
  std::string path = dir.path() + "/log";
  auto child = ChildProcess::Start({.argv = {"sh", "-c", "echo broken >&2"}, .stderr_path = path});
  REQUIRE(child.ok());
  CHECK(child->Wait(absl::Seconds(20)) == 0);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str() == "broken\n");
}

TEST_CASE("a ready line parses back, other text does not") {
  auto line =
      ParseReadyLine(R"({"ready":true,"process":"p","grpc":"127.0.0.1:1","http":"127.0.0.1:2"})");
  REQUIRE(line.ok());
  CHECK(line->grpc == "127.0.0.1:1");
  CHECK(line->http == "127.0.0.1:2");
  CHECK_FALSE(ParseReadyLine("hello").ok());
  CHECK_FALSE(ParseReadyLine("{}").ok());
}

}  // namespace kmosaic
