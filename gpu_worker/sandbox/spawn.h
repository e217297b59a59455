// Starts a program from a process with many threads.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_SPAWN_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_SPAWN_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

struct SpawnRequest {
  // argv[0] is a path.
  std::vector<std::string> argv;
  // The whole environment, "NAME=value".
  std::vector<std::string> env;
  // Empty: this process's.
  std::string working_directory;
  // Descriptor here -> its number there. No other descriptor crosses.
  std::vector<std::pair<int, int>> fds;
  // Open cgroup.procs files of groups that the program joins before it runs.
  std::vector<int> join_fds;
  std::vector<std::pair<int, rlim_t>> limits;
  // A session (and process group) of its own.
  bool new_session = true;
};

// Not reaped by itself: call Reap, or wait on `pid`.
struct SpawnedProcess {
  pid_t pid = -1;
  UniqueFd pidfd;
};

// No handler of pthread_atfork runs, and between clone and exec only system calls are
// made, so locks that other threads hold do no harm. The kernel kills the program when
// the calling thread ends: call from one that outlives it. NOT_FOUND when there is no
// such program; INTERNAL names the step that failed.
absl::StatusOr<SpawnedProcess> Spawn(const SpawnRequest& request);

// Waits for the end and returns the wait status; -1 when it is not a child of ours.
int Reap(pid_t pid);

// Full path of `program` in PATH or, when it contains '/', itself; NOT_FOUND else.
absl::StatusOr<std::string> FindProgram(const std::string& program);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_SPAWN_H_
