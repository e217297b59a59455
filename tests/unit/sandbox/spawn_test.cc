#include "gpu_worker/sandbox/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "absl/strings/match.h"
#include "gpu_worker/sandbox/output_buffer.h"

namespace kmosaic {
namespace {

struct Ran {
  int status = -1;
  std::string output;
};

Ran Run(SpawnRequest request) {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
  UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  request.fds.push_back({write_end.get(), 1});
  auto process = Spawn(request);
  write_end.Reset();
  INFO(process.status().ToString());
  REQUIRE(process.ok());
  OutputBuffer buffer(1 << 16, 0);
  while (!*buffer.Drain(read_end.get())) {
  }
  return {Reap(process->pid), buffer.Text()};
}

TEST_CASE("a program gets exactly the environment, descriptors and folder that it was given") {
  UniqueFd leaked(open("/dev/null", O_RDONLY));  // without O_CLOEXEC, as libraries do
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", "env; pwd; ls /proc/self/fd | tr '\\n' ' '"};
  request.env = {"A=1"};
  request.working_directory = "/usr";
  Ran ran = Run(request);
  CHECK(absl::StrContains(ran.output, "A=1\n"));
  CHECK_FALSE(absl::StrContains(ran.output, "HOME="));
  CHECK(absl::StrContains(ran.output, "/usr\n"));
  // 1 from us, 3 is ls's own; 0 and 2 as they are here.
  CHECK(absl::StrContains(ran.output, "0 1 2 3 \n") + absl::StrContains(ran.output, "0 1 2 3 ") >
        0);
}

TEST_CASE("limits are set, and lowered to what is allowed") {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", "ulimit -f; ulimit -c"};
  request.limits = {{RLIMIT_FSIZE, 1 << 20}, {RLIMIT_CORE, 0}};
  CHECK(Run(request).output == "2048\n0\n");
}

TEST_CASE("a program that does not exist is NOT_FOUND and leaves no child") {
  SpawnRequest request;
  request.argv = {"/nonexistent/program"};
  CHECK(absl::IsNotFound(Spawn(request).status()));
  CHECK(waitpid(-1, nullptr, WNOHANG) < 0);
}

TEST_CASE("a folder that does not exist is named as the step that failed") {
  SpawnRequest request;
  request.argv = {"/bin/true"};
  request.working_directory = "/nonexistent";
  auto process = Spawn(request);
  REQUIRE_FALSE(process.ok());
  CHECK(absl::StrContains(std::string(process.status().message()), "chdir"));
}

TEST_CASE("a program dies with the thread that started it") {
  SpawnedProcess process;
  std::thread starter([&] {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    process = *Spawn(request);
  });
  starter.join();
  pollfd ended{process.pidfd.get(), POLLIN, 0};
  CHECK(poll(&ended, 1, 10000) == 1);
  int status = Reap(process.pid);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
}

TEST_CASE("programs start while other threads allocate and lock") {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!stop) std::string(1000, 'x').append("y");
    });
  }
  for (int i = 0; i < 200; ++i) {
    auto process = Spawn({.argv = {"/bin/true"}});
    REQUIRE(process.ok());
    CHECK(Reap(process->pid) == 0);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST_CASE("programs are looked up in PATH") {
  CHECK(FindProgram("sh").ok());
  CHECK(absl::IsNotFound(FindProgram("no-such-program-at-all").status()));
  CHECK(*FindProgram("/bin/sh") == "/bin/sh");
}

}  // namespace
}  // namespace kmosaic
