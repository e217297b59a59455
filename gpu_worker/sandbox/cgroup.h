// Control groups, version 2 or 1: one small group per sandbox.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_CGROUP_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_CGROUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

// Where groups are made. `memory` and `pids` are the same folder in version 2.
struct CgroupPlace {
  int version = 0;
  std::string memory;
  std::string pids;
};

// What /proc/self/cgroup and /proc/self/mountinfo say; a pure function of their text.
// Folders are not checked. NOT_FOUND when memory and pids controllers are not both there.
absl::StatusOr<CgroupPlace> LocateCgroups(const std::string& self_cgroup,
                                          const std::string& self_mountinfo);

// A group with limits. The destructor removes it; a group that cannot go yet is removed
// by a later SweepCgroups.
class Cgroup {
 public:
  // `name` must be new. FAILED_PRECONDITION names the file that could not be written.
  static absl::StatusOr<Cgroup> Create(const CgroupPlace& place, const std::string& name,
                                       uint64_t memory_bytes, uint64_t processes);
  Cgroup(Cgroup&&) noexcept = default;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();

  // Open cgroup.procs files; a process that writes "0" into each joins.
  const std::vector<UniqueFd>& join_fds() const { return join_fds_; }

  // Times the kernel killed a process for memory, and refused a fork.
  uint64_t MemoryKills() const;
  uint64_t RefusedForks() const;
  uint64_t PeakBytes() const;

 private:
  Cgroup() = default;
  void Remove();

  int version_ = 0;
  std::vector<std::string> folders_;
  std::vector<UniqueFd> join_fds_;
};

// Version 2 forbids processes in a group that shares out controllers: moves this process
// into a leaf "main" of its own group when nobody else is in it, and turns memory and
// pids on for new groups. OK at once in version 1. FAILED_PRECONDITION says what is in
// the way.
absl::Status PrepareCgroups(const CgroupPlace& place);

// Removes groups of this naming whose daemon does not run any more, killing what is left
// in them. Returns how many were removed.
int SweepCgroups(const CgroupPlace& place);

// "kmosaic-PID-STARTTIME-NUMBER": names the daemon, so that a later one can tell that it
// is gone.
std::string CgroupName(uint64_t number);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_CGROUP_H_
