#include "gpu_worker/sandbox/compiler_sandbox.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "gpu_worker/sandbox/process_tree.h"
#include "tests/testing/temp_dir.h"

namespace kmosaic {
namespace {

struct Fixture {
  explicit Fixture(bool unsandboxed = false) {
    auto made_guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
    REQUIRE(made_guard.ok());
    guard = *std::move(made_guard);
    auto made = CompilerSandbox::Create(guard.get(), unsandboxed);
    INFO(made.status().ToString());
    REQUIRE(made.ok());
    sandbox = *std::move(made);
  }
  CommandOutcome Shell(const std::string& script, SandboxedCommand command = {}) {
    command.argv = {"/bin/sh", "-c", script};
    command.directory = directory.path();
    auto outcome = sandbox->Run(command);
    INFO(outcome.status().ToString());
    REQUIRE(outcome.ok());
    return *outcome;
  }
  TempDir directory;
  std::unique_ptr<MemoryGuard> guard;
  std::unique_ptr<CompilerSandbox> sandbox;
};

TEST_CASE("a compiler builds a library in its directory") {
  Fixture fixture;
  std::ofstream(fixture.directory.path() + "/a.cc") << "#include <vector>\nint f() { return 1; }\n";
  SandboxedCommand command;
  command.argv = {"/usr/bin/g++", "-shared", "-fPIC", "-o", "a.so", "a.cc"};
  command.directory = fixture.directory.path();
  auto outcome = fixture.sandbox->Run(command);
  REQUIRE(outcome.ok());
  INFO(outcome->output);
  CHECK(outcome->succeeded());
  CHECK(outcome->sandboxed);
  CHECK(std::filesystem::exists(fixture.directory.path() + "/a.so"));
}

TEST_CASE("where the system's bubblewrap is too old or missing, the installation's own is used") {
  TempDir home;
  TempDir old;
  std::filesystem::create_directory(home.path() + "/bin");
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kAuto);
  REQUIRE(guard.ok());
  std::string path = getenv("PATH");
  setenv("KMOSAIC_HOME", home.path().c_str(), 1);
  for (bool exists : {true, false}) {
    if (exists) {
      std::ofstream(old.path() + "/bwrap") << "#!/bin/sh\necho 'unknown option' >&2\nexit 1\n";
      std::filesystem::permissions(old.path() + "/bwrap", std::filesystem::perms(0755));
    } else {
      std::filesystem::remove(old.path() + "/bwrap");
    }
    setenv("PATH", old.path().c_str(), 1);
    auto none = CompilerSandbox::Create(guard->get(), false);
    std::filesystem::create_symlink("/usr/bin/bwrap", home.path() + "/bin/bwrap");
    auto own = CompilerSandbox::Create(guard->get(), false);
    std::filesystem::remove(home.path() + "/bin/bwrap");
    setenv("PATH", path.c_str(), 1);
    CHECK(absl::IsFailedPrecondition(none.status()));
    CHECK(absl::StrContains(std::string(none.status().message()),
                            exists ? "cannot make a sandbox" : "is not installed"));
    CHECK(own.ok());
  }
  unsetenv("KMOSAIC_HOME");
}

TEST_CASE("a compile error comes back with the compiler's words") {
  Fixture fixture;
  CommandOutcome outcome = fixture.Shell("echo 'int f( {' > a.cc; g++ -c a.cc");
  CHECK(outcome.exit_code == 1);
  CHECK(absl::StrContains(outcome.output, "a.cc:1:"));
}

TEST_CASE("source text cannot include what is not shown") {
  Fixture fixture;
  TempDir data;
  std::ofstream(data.path() + "/secret") << "canary\n";
  CommandOutcome outcome = fixture.Shell("printf '#include \"" + data.path() +
                                         "/secret\"\\n' > a.cc; g++ -E a.cc; cat /etc/shadow; "
                                         "ls /root /home; cat /proc/*/environ | tr '\\0' '\\n'");
  CHECK_FALSE(absl::StrContains(outcome.output, "canary\n"));
  CHECK_FALSE(absl::StrContains(outcome.output, "root:"));
  CHECK(absl::StrContains(outcome.output, "No such file"));
}

TEST_CASE("a folder that is given can be read and not written") {
  Fixture fixture;
  TempDir headers;
  std::filesystem::permissions(headers.path(), std::filesystem::perms(0755));
  std::ofstream(headers.path() + "/h.h") << "content\n";
  SandboxedCommand command;
  command.readable = {headers.path()};
  CommandOutcome outcome = fixture.Shell(
      "cat " + headers.path() + "/h.h; echo x > " + headers.path() + "/h.h || echo refused",
      command);
  CHECK(absl::StrContains(outcome.output, "content"));
  CHECK(absl::StrContains(outcome.output, "refused"));
}

TEST_CASE("there is no network, no environment and no other process") {
  Fixture fixture;
  setenv("KMOSAIC_TEST_CANARY", "canary-value", 1);
  CommandOutcome outcome =
      fixture.Shell("env; cat /proc/1/environ; ls /proc | grep -c '^[0-9]'; cat /proc/net/dev");
  CHECK_FALSE(absl::StrContains(outcome.output, "canary-value"));
  CHECK_FALSE(absl::StrContains(outcome.output, "eth"));
}

TEST_CASE("limits end a command, each told apart") {
  Fixture fixture;
  SandboxedCommand limits;
  limits.memory_bytes = 64 << 20;
  limits.processes = 32;
  limits.file_bytes = 4 << 20;
  limits.wall_limit = absl::Seconds(20);
  CommandOutcome outcome = fixture.Shell("tail /dev/zero", limits);
  CHECK(outcome.memory_exceeded);
  CHECK_FALSE(outcome.timed_out);
  outcome = fixture.Shell("f() { f | f & }; f; sleep 20", limits);
  CHECK(outcome.processes_exceeded);
  CHECK_FALSE(outcome.timed_out);
  outcome = fixture.Shell("exec dd if=/dev/zero of=big bs=1M count=100", limits);
  CHECK(outcome.file_limit);
  SandboxedCommand short_time = limits;
  short_time.wall_limit = absl::Milliseconds(500);
  outcome = fixture.Shell("sleep 1000", short_time);
  CHECK(outcome.timed_out);
  CHECK_FALSE(outcome.succeeded());
}

TEST_CASE("output is bounded and drained") {
  Fixture fixture;
  SandboxedCommand command;
  command.output_bytes = 1000;
  CommandOutcome outcome = fixture.Shell("echo first; yes | head -c 3000000; echo last", command);
  CHECK(outcome.succeeded());
  CHECK(outcome.output.size() < 1200);
  CHECK(outcome.output_dropped_bytes > 2900000);
  CHECK(absl::StartsWith(outcome.output, "first"));
  CHECK(absl::EndsWith(outcome.output, "last\n"));
}

TEST_CASE("descendants that left the session are gone at the end") {
  Fixture fixture;
  SandboxedCommand command;
  command.wall_limit = absl::Milliseconds(700);
  // Named by an argument that nothing else has.
  std::string marker = "1234" + std::to_string(getpid());
  fixture.Shell("setsid setsid sleep " + marker + " & sleep 1000", command);
  for (const auto& [pid, info] : ListProcesses()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK_FALSE(absl::StrContains(line, marker));
  }
}

TEST_CASE("a command can be cancelled") {
  Fixture fixture;
  SandboxedCommand command;
  command.cancelled = [] { return true; };
  CHECK(fixture.Shell("sleep 1000", command).was_cancelled);
}

TEST_CASE("a signal is told as the shell tells it") {
  Fixture fixture;
  CommandOutcome outcome = fixture.Shell("kill -SEGV $$");
  CHECK(outcome.signal_number == SIGSEGV);
  CHECK(outcome.exit_code == 128 + SIGSEGV);
}

TEST_CASE("a program that does not exist is an error of the machine") {
  Fixture fixture;
  SandboxedCommand command;
  command.argv = {"/nonexistent/nvcc"};
  command.directory = fixture.directory.path();
  auto outcome = fixture.sandbox->Run(command);
  REQUIRE_FALSE(outcome.ok());
  CHECK(absl::StrContains(std::string(outcome.status().message()), "/nonexistent/nvcc"));
}

TEST_CASE("the override runs without a sandbox and says so") {
  Fixture fixture(/*unsandboxed=*/true);
  CommandOutcome outcome = fixture.Shell("pwd; echo $HOME");
  CHECK(outcome.succeeded());
  CHECK_FALSE(outcome.sandboxed);
  CHECK(absl::StrContains(outcome.output, "/tmp\n"));
  SandboxedCommand command;
  command.wall_limit = absl::Milliseconds(300);
  CHECK(fixture.Shell("sleep 1000", command).timed_out);
}

}  // namespace
}  // namespace kmosaic
