#include "gpu_worker/sandbox/memory_guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "gpu_worker/sandbox/spawn.h"

namespace kmosaic {
namespace {

// Runs a shell command in a group until it ends, or it is killed by the guard.
std::optional<Excess> RunIn(MemoryGuard* guard, uint64_t memory_bytes, uint64_t processes,
                            const std::string& script) {
  auto group = guard->NewGroup(memory_bytes, processes);
  REQUIRE(group.ok());
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin"};
  request.join_fds = (*group)->join_fds();
  auto process = Spawn(request);
  REQUIRE(process.ok());
  (*group)->Watch(process->pid, process->pidfd.get());
  std::optional<Excess> excess;
  while (true) {
    pollfd ended{process->pidfd.get(), POLLIN, 0};
    bool over = poll(&ended, 1, 20) > 0;
    excess = (*group)->Check();
    if (over) break;
    if (excess) kill(-process->pid, SIGKILL);
  }
  kill(-process->pid, SIGKILL);
  Reap(process->pid);
  return (*group)->Check() ? (*group)->Check() : excess;
}

TEST_CASE("a guard tells what was exceeded, whichever kind is in force") {
  for (MemoryGuard::Mode mode : {MemoryGuard::Mode::kAuto, MemoryGuard::Mode::kWatchdog}) {
    auto guard = MemoryGuard::Create(mode);
    REQUIRE(guard.ok());
    INFO((*guard)->Describe());
    CHECK(RunIn(guard->get(), 256 << 20, 50, "true") == std::nullopt);
    CHECK(RunIn(guard->get(), 32 << 20, 50, "tail /dev/zero") == Excess::kMemory);
    CHECK(RunIn(guard->get(), 256 << 20, 8,
                "i=0; while [ $i -lt 40 ]; do sleep 30 & i=$((i+1)); done; wait") ==
          Excess::kProcesses);
  }
}

TEST_CASE("the description says which guard it is") {
  auto guard = MemoryGuard::Create(MemoryGuard::Mode::kWatchdog);
  REQUIRE(guard.ok());
  CHECK((*guard)->Describe().find("watchdog") != std::string::npos);
}

}  // namespace
}  // namespace kmosaic
