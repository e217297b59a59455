#include "gpu_worker/sandbox/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "gpu_worker/sandbox/kernel_file.h"
#include "gpu_worker/sandbox/spawn.h"

namespace kmosaic {
namespace {

TEST_CASE("a program's name may hold anything") {
  auto info = ParseStat(
      "77 (a) R 9 (b) S 12 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 5 0 4242 1000 10 1 2 3 4 5");
  REQUIRE(info.ok());
  CHECK(info->pid == 77);
  CHECK(info->parent == 12);
  CHECK(info->threads == 5);
  CHECK(info->start_time == 4242);
  CHECK_FALSE(info->zombie);
}

TEST_CASE("text that is no stat file is refused") {
  for (const char* text : {"", "77", "77 (x", "77 (x) R 1", "x (y) R 1 2 3"}) {
    CHECK_FALSE(ParseStat(text).ok());
  }
}

TEST_CASE("a file that opens but cannot be read is empty, as when its process has just ended") {
  CHECK(ReadKernelFile("/proc/self").empty());  // EISDIR from read
  CHECK(ReadKernelFile("/proc/no-such-process/stat").empty());
  CHECK(ReadKernelFile("/proc/self/stat").find('(') != std::string::npos);
}

TEST_CASE("descendants are found through all generations") {
  std::map<pid_t, ProcessInfo> processes;
  for (auto [pid, parent] : {std::pair{1, 0}, {5, 1}, {6, 5}, {7, 6}, {8, 1}}) {
    processes[pid].pid = pid;
    processes[pid].parent = parent;
  }
  auto found = Descendants(processes, 5);
  std::sort(found.begin(), found.end());
  CHECK(found == std::vector<pid_t>{5, 6, 7});
  CHECK(Descendants(processes, 99).empty());
}

TEST_CASE("this process sees itself and its memory") {
  std::string touched(8 << 20, 'x');
  CHECK(ListProcesses().count(getpid()) == 1);
  CHECK(OwnMemoryBytes(getpid()) > touched.size());
  auto share = ProportionalMemoryBytes(getpid());
  REQUIRE(share.has_value());
  CHECK(*share > touched.size());
}

TEST_CASE("a process that is gone has no memory and is not found") {
  auto process = Spawn({.argv = {"/bin/true"}});
  REQUIRE(process.ok());
  Reap(process->pid);
  CHECK(absl::IsNotFound(ReadProcess(process->pid).status()));
  CHECK(OwnMemoryBytes(process->pid) == 0);
}

}  // namespace
}  // namespace kmosaic
