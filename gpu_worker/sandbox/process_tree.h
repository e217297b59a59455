// Sums over a process and its descendants, from /proc.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_PROCESS_TREE_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kmosaic {

struct ProcessInfo {
  pid_t pid = -1;
  pid_t parent = -1;
  int64_t threads = 0;
  // Ticks since boot; with `pid` it names a process for good.
  uint64_t start_time = 0;
  bool zombie = false;
};

// The text of /proc/PID/stat. INVALID_ARGUMENT when it is not one.
absl::StatusOr<ProcessInfo> ParseStat(const std::string& text);

// NOT_FOUND when there is no such process.
absl::StatusOr<ProcessInfo> ReadProcess(pid_t pid);

// All processes that can be seen now, by pid.
std::map<pid_t, ProcessInfo> ListProcesses();

// `root` and all below it, as far as `processes` shows.
std::vector<pid_t> Descendants(const std::map<pid_t, ProcessInfo>& processes, pid_t root);

// Memory of its own: anonymous and shared pages, without mapped files. 0 when the
// process is gone.
uint64_t OwnMemoryBytes(pid_t pid);

// The same with each page divided by the number of processes that share it; nothing when
// the kernel does not show it.
std::optional<uint64_t> ProportionalMemoryBytes(pid_t pid);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_PROCESS_TREE_H_
