// Bounds on the memory and the number of processes of sandboxes.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_MEMORY_GUARD_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_MEMORY_GUARD_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/cgroup.h"

namespace kmosaic {

// Which bound was broken.
enum class Excess { kMemory, kProcesses };

// The bounds of one sandbox. Destroy it after the sandbox's processes are gone. One
// thread at a time.
class GuardedGroup {
 public:
  virtual ~GuardedGroup() = default;
  // A starting process writes "0" into each (Spawn and kmosaic_enter do).
  virtual std::vector<int> join_fds() const = 0;
  // Once the first process runs: `pid` must not be reaped before this object ends. The
  // watchdog kills through its own copy of `pidfd`.
  virtual void Watch(pid_t pid, int pidfd) = 0;
  // What was exceeded so far. With control groups the kernel has killed a process (memory)
  // or refused a fork (processes), and the caller ends the rest; the watchdog has killed.
  virtual std::optional<Excess> Check() = 0;
  // Highest use seen; 0 where the kernel does not tell.
  virtual uint64_t PeakBytes() = 0;
};

// Makes groups; outlives them. Thread-safe.
class MemoryGuard {
 public:
  enum class Mode { kAuto, kCgroup, kWatchdog };

  // kAuto: control groups (version 2 or 1) where they can be written, else a thread that
  // sums the memory of each sandbox's process tree every 20 ms. kCgroup:
  // FAILED_PRECONDITION where they cannot be used. Removes what earlier daemons left
  // behind.
  static absl::StatusOr<std::unique_ptr<MemoryGuard>> Create(Mode mode);
  virtual ~MemoryGuard() = default;

  // Which of the two is in force and why: a line for people.
  virtual std::string Describe() const = 0;

  // `processes` counts threads too.
  virtual absl::StatusOr<std::unique_ptr<GuardedGroup>> NewGroup(uint64_t memory_bytes,
                                                                 uint64_t processes) = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_MEMORY_GUARD_H_
