#include "cli/system/supervisor.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/system/local_system.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/files.h"

using namespace kmosaic;

namespace {

std::string GrpcOf(const std::optional<ReadyLine>& line) { return line ? line->grpc : "none"; }

// A daemon in shell with DIR and NAME set; $0 is the address of its last life, $1 that of
// the first daemon.
Daemon Script(const TempDir& temp, const std::string& name, const std::string& body) {
  Daemon daemon;
  daemon.name = name;
  daemon.log_path = temp.path() + "/" + name + ".log";
  daemon.arguments = [body](const auto& own, const auto& first) {
    return std::vector<std::string>{"/bin/sh", "-c", body, GrpcOf(own), GrpcOf(first)};
  };
  daemon.env["DIR"] = temp.path();
  daemon.env["NAME"] = name;
  return daemon;
}

// Ready at address NAME:1, and ends at SIGTERM with a note.
constexpr char kServe[] =
    "trap 'echo $NAME >> $DIR/ends; exit 0' TERM\n"
    "echo \"start $0 $1\" >> $DIR/$NAME.starts\n"
    "echo '{\"ready\":true,\"process\":\"p\",\"grpc\":\"'$NAME':1\",\"http\":\"h\"}'\n"
    "while true; do sleep 0.05; done\n";

}  // namespace

TEST_CASE("Daemons start with the first one's address and end in reverse order") {
  TempDir temp;
  SystemClock clock;
  Supervisor supervisor(
      {Script(temp, "a", kServe), Script(temp, "b", kServe), Script(temp, "c", kServe)}, clock, {});
  Interrupt stop;
  REQUIRE(supervisor.Start(stop).ok());
  CHECK(supervisor.ready(0).grpc == "a:1");
  CHECK(supervisor.ready(2).grpc == "c:1");
  CHECK(ReadFile(temp.path() + "/a.starts") == "start none none\n");
  CHECK(ReadFile(temp.path() + "/b.starts") == "start none a:1\n");
  supervisor.Drain();
  CHECK(ReadFile(temp.path() + "/ends") == "c\nb\na\n");
}

TEST_CASE("A daemon that ends before it is ready fails the start with the end of its log") {
  TempDir temp;
  SystemClock clock;
  Supervisor supervisor({Script(temp, "a", "echo first >&2; echo the reason >&2; exit 7")}, clock,
                        {});
  absl::Status status = supervisor.Start(Interrupt());
  REQUIRE(absl::IsUnavailable(status));
  std::string message(status.message());
  CHECK(message.find("a ended with exit code 7 before it was ready") == 0);
  CHECK(message.find("first\nthe reason") != std::string::npos);
}

TEST_CASE("A daemon that says nothing in time fails the start") {
  TempDir temp;
  SystemClock clock;
  Supervisor::Options options;
  options.ready_timeout = absl::Milliseconds(100);
  Supervisor supervisor({Script(temp, "a", "exec sleep 600")}, clock, options);
  absl::Status status = supervisor.Start(Interrupt());
  REQUIRE(absl::IsUnavailable(status));
  CHECK(std::string(status.message()).find("a did not get ready within 0.1s") == 0);
}

TEST_CASE("A program that is not there fails the start") {
  TempDir temp;
  SystemClock clock;
  Daemon daemon = Script(temp, "a", "");
  daemon.arguments = [](const auto&, const auto&) {
    return std::vector<std::string>{"/no/such/program"};
  };
  Supervisor supervisor({daemon}, clock, {});
  CHECK(absl::IsNotFound(supervisor.Start(Interrupt())));
}

TEST_CASE("An interrupt ends the start") {
  TempDir temp;
  SystemClock clock;
  Supervisor supervisor({Script(temp, "a", "exec sleep 600")}, clock, {});
  Interrupt stop;
  stop.Trigger();
  CHECK(absl::IsCancelled(supervisor.Start(stop)));
}

TEST_CASE("What is still starting is killed at once, what serves ends in order") {
  TempDir temp;
  SystemClock clock;
  std::vector<std::string> said;
  Supervisor::Options options;
  options.say = [&](const std::string& line) { said.push_back(line); };
  // Starts for ever and does not listen to SIGTERM; tells the fifo that it is there.
  std::string fifo = temp.path() + "/fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  Supervisor supervisor({Script(temp, "a", kServe),
                         Script(temp, "b", "trap '' TERM; echo here > $DIR/fifo; exec sleep 600")},
                        clock, options);
  Interrupt stop;
  std::thread interrupter([&] {
    std::ifstream waits(fifo);
    std::string line;
    std::getline(waits, line);
    stop.Trigger();
  });
  CHECK(absl::IsCancelled(supervisor.Start(stop)));
  interrupter.join();
  supervisor.Drain();
  CHECK(said.empty());  // nobody's drain time ran out
  CHECK(ReadFile(temp.path() + "/ends") == "a\n");
}

TEST_CASE("A daemon that died is started again and told where it was") {
  TempDir temp;
  SystemClock clock;
  // Dies once, after the first start.
  std::string once =
      std::string(
          "if [ ! -e $DIR/died ]; then touch $DIR/died; echo \"start $0 $1\" >> $DIR/$NAME.starts;"
          "echo '{\"ready\":true,\"process\":\"p\",\"grpc\":\"a:9\",\"http\":\"\"}'; exit 1; "
          "fi\n") +
      kServe;
  Interrupt stop;
  std::vector<std::string> said;
  Supervisor::Options options;
  options.say = [&](const std::string& line) {
    said.push_back(line);
    if (line.find("is ready again") != std::string::npos) stop.Trigger();
  };
  Supervisor supervisor({Script(temp, "a", once)}, clock, options);
  REQUIRE(supervisor.Start(stop).ok());
  supervisor.Run(stop);
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("a ended with exit code 1; starting it again in 0.5s") == 0);
  CHECK(ReadFile(temp.path() + "/a.starts") == "start none none\nstart a:9 a:9\n");
  supervisor.Drain();
}

TEST_CASE("A daemon that ended as it was told to is left alone, but not the first") {
  TempDir temp;
  SystemClock clock;
  auto once = [](const std::string& body) {
    return "if [ ! -e $DIR/$NAME.ended ]; then touch $DIR/$NAME.ended;"
           "echo '{\"ready\":true,\"process\":\"p\",\"grpc\":\"a:9\",\"http\":\"\"}'; exit 0; "
           "fi\n" +
           body;
  };
  Interrupt stop;
  std::vector<std::string> said;
  Supervisor::Options options;
  options.say = [&](const std::string& line) {
    said.push_back(line);
    if (line.find("a is ready again") != std::string::npos) stop.Trigger();
  };
  Supervisor supervisor({Script(temp, "a", once(kServe)), Script(temp, "b", once(kServe))}, clock,
                        options);
  REQUIRE(supervisor.Start(stop).ok());
  supervisor.Run(stop);
  supervisor.Drain();
  std::sort(said.begin(), said.end());
  REQUIRE(said.size() == 3);
  CHECK(said[0].find("a ended with exit code 0; starting it again in 0.5s") == 0);
  CHECK(said[1] == "a is ready again");
  CHECK(said[2] == "b has ended as it was told to");
  CHECK_FALSE(std::filesystem::exists(temp.path() + "/b.starts"));
}

TEST_CASE("A daemon that does not end when asked is killed") {
  TempDir temp;
  SystemClock clock;
  std::string stubborn =
      "trap '' TERM; echo '{\"ready\":true,\"process\":\"p\",\"grpc\":\"a:1\",\"http\":\"\"}'; "
      "while true; do sleep 0.05; done";
  std::vector<std::string> said;
  Supervisor::Options options;
  options.drain_timeout = absl::Milliseconds(50);
  options.say = [&](const std::string& line) { said.push_back(line); };
  Supervisor supervisor({Script(temp, "a", stubborn)}, clock, options);
  REQUIRE(supervisor.Start(Interrupt()).ok());
  supervisor.Drain();
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("killing it") != std::string::npos);
}

TEST_CASE("The wait before a restart doubles up to half a minute, and a long life forgives") {
  RestartPolicy policy;
  CHECK(policy.OnExit(absl::ZeroDuration()) == absl::Milliseconds(500));
  CHECK(policy.OnExit(absl::Seconds(1)) == absl::Seconds(1));
  CHECK(policy.OnExit(absl::Seconds(1)) == absl::Seconds(2));
  for (int i = 0; i < 10; ++i) policy.OnExit(absl::Seconds(1));
  CHECK(policy.OnExit(absl::Seconds(1)) == absl::Seconds(30));
  CHECK(policy.OnExit(absl::Minutes(2)) == absl::Milliseconds(500));
}

TEST_CASE("One data directory serves one system") {
  TempDir temp;
  auto first = DataDirectory::Open(temp.path() + "/data");
  REQUIRE(first.ok());
  CHECK(std::filesystem::is_directory(temp.path() + "/data/logs"));
  auto second = DataDirectory::Open(temp.path() + "/data");
  CHECK(absl::IsFailedPrecondition(second.status()));
  first->reset();
  CHECK(DataDirectory::Open(temp.path() + "/data").ok());
}
