#include "gpu_worker/sandbox/memory_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gpu_worker/sandbox/kernel_file.h"
#include "gpu_worker/sandbox/process_tree.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {
namespace {

constexpr auto kWatchInterval = std::chrono::milliseconds(20);

class CgroupGroup : public GuardedGroup {
 public:
  explicit CgroupGroup(Cgroup group) : group_(std::move(group)) {}

  std::vector<int> join_fds() const override {
    std::vector<int> fds;
    for (const UniqueFd& fd : group_.join_fds()) fds.push_back(fd.get());
    return fds;
  }
  void Watch(pid_t, int) override {}
  std::optional<Excess> Check() override {
    if (group_.MemoryKills() > 0) return Excess::kMemory;
    if (group_.RefusedForks() > 0) return Excess::kProcesses;
    return std::nullopt;
  }
  uint64_t PeakBytes() override { return group_.PeakBytes(); }

 private:
  Cgroup group_;
};

class CgroupGuard : public MemoryGuard {
 public:
  explicit CgroupGuard(CgroupPlace place) : place_(std::move(place)) {}

  std::string Describe() const override {
    return absl::StrCat("control groups version ", place_.version, " below ", place_.memory);
  }
  absl::StatusOr<std::unique_ptr<GuardedGroup>> NewGroup(uint64_t memory_bytes,
                                                         uint64_t processes) override {
    auto group = Cgroup::Create(place_, CgroupName(next_++), memory_bytes, processes);
    if (!group.ok()) return group.status();
    return std::make_unique<CgroupGroup>(*std::move(group));
  }

 private:
  const CgroupPlace place_;
  std::atomic<uint64_t> next_{0};
};

struct Watched {
  const uint64_t memory_bytes;
  const uint64_t processes;
  pid_t pid = -1;
  UniqueFd pidfd;
  // What a forked process shares with the one it was forked from.
  uint64_t inherited_bytes = 0;
  uint64_t peak_bytes = 0;
  std::optional<Excess> excess;
};

class WatchdogGuard : public MemoryGuard {
 public:
  explicit WatchdogGuard(std::string reason)
      : reason_(std::move(reason)), thread_([this] { Run(); }) {}

  ~WatchdogGuard() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  std::string Describe() const override {
    return absl::StrCat("limits per process and a watchdog over the memory of each process tree (",
                        reason_, "); memory in files that no process maps is not counted");
  }

  absl::StatusOr<std::unique_ptr<GuardedGroup>> NewGroup(uint64_t memory_bytes,
                                                         uint64_t processes) override;

 private:
  class Group;

  void Run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      bool any = std::any_of(watched_.begin(), watched_.end(),
                             [](const Watched& w) { return w.pid >= 0 && !w.excess; });
      if (!any) {
        wake_.wait(lock);
        continue;
      }
      std::map<pid_t, ProcessInfo> processes = ListProcesses();
      for (Watched& watched : watched_) {
        if (watched.pid >= 0 && !watched.excess) Measure(processes, watched);
      }
      wake_.wait_for(lock, kWatchInterval);
    }
  }

  static void Measure(const std::map<pid_t, ProcessInfo>& processes, Watched& watched) {
    uint64_t bytes = 0;
    uint64_t threads = 0;
    std::vector<pid_t> tree = Descendants(processes, watched.pid);
    for (pid_t pid : tree) {
      bytes += OwnMemoryBytes(pid);
      threads += static_cast<uint64_t>(processes.at(pid).threads);
    }
    bytes -= std::min(bytes, watched.inherited_bytes);
    // Pages that forked processes share were counted once for each: look closer, at a
    // price, before it matters.
    if (bytes > watched.memory_bytes) {
      bytes = std::min(bytes, Proportional(tree, watched.pid));
    }
    watched.peak_bytes = std::max(watched.peak_bytes, bytes);
    if (bytes > watched.memory_bytes) watched.excess = Excess::kMemory;
    if (threads > watched.processes) watched.excess = Excess::kProcesses;
    if (watched.excess) syscall(SYS_pidfd_send_signal, watched.pidfd.get(), SIGKILL, nullptr, 0);
  }

  // A sandbox's first process hides itself, and is our own and small.
  static uint64_t Proportional(const std::vector<pid_t>& tree, pid_t first) {
    uint64_t bytes = 0;
    for (pid_t pid : tree) {
      std::optional<uint64_t> share = ProportionalMemoryBytes(pid);
      if (!share) share = pid == first ? 0 : OwnMemoryBytes(pid);
      bytes += *share;
    }
    return bytes;
  }

  const std::string reason_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // All below: guarded by mutex_.
  std::list<Watched> watched_;
  bool stopping_ = false;
  std::thread thread_;
};

class WatchdogGuard::Group : public GuardedGroup {
 public:
  Group(WatchdogGuard* guard, std::list<Watched>::iterator watched)
      : guard_(guard), watched_(watched) {}
  ~Group() override {
    std::lock_guard lock(guard_->mutex_);
    guard_->watched_.erase(watched_);
  }
  std::vector<int> join_fds() const override { return {}; }
  void Watch(pid_t pid, int pidfd) override {
    uint64_t inherited = 0;
    for (pid_t member : Descendants(ListProcesses(), pid)) inherited += OwnMemoryBytes(member);
    {
      std::lock_guard lock(guard_->mutex_);
      watched_->inherited_bytes = inherited;
      watched_->pidfd = UniqueFd(fcntl(pidfd, F_DUPFD_CLOEXEC, 3));
      watched_->pid = pid;
    }
    guard_->wake_.notify_all();
  }
  std::optional<Excess> Check() override {
    std::lock_guard lock(guard_->mutex_);
    return watched_->excess;
  }
  uint64_t PeakBytes() override {
    std::lock_guard lock(guard_->mutex_);
    return watched_->peak_bytes;
  }

 private:
  WatchdogGuard* guard_;
  std::list<Watched>::iterator watched_;
};

absl::StatusOr<std::unique_ptr<GuardedGroup>> WatchdogGuard::NewGroup(uint64_t memory_bytes,
                                                                      uint64_t processes) {
  std::lock_guard lock(mutex_);
  watched_.push_back(Watched{memory_bytes, processes, -1, UniqueFd(), 0, 0, std::nullopt});
  return std::make_unique<Group>(this, std::prev(watched_.end()));
}

// A place where a group can really be made, tried.
absl::StatusOr<CgroupPlace> UsableCgroups() {
  auto place =
      LocateCgroups(ReadKernelFile("/proc/self/cgroup"), ReadKernelFile("/proc/self/mountinfo"));
  if (!place.ok()) return place.status();
  if (absl::Status prepared = PrepareCgroups(*place); !prepared.ok()) return prepared;
  SweepCgroups(*place);
  auto trial = Cgroup::Create(*place, CgroupName(~uint64_t{0}), uint64_t{1} << 30, 64);
  if (!trial.ok()) return trial.status();
  return place;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryGuard>> MemoryGuard::Create(Mode mode) {
  if (mode == Mode::kWatchdog) return std::make_unique<WatchdogGuard>("as configured");
  auto place = UsableCgroups();
  if (place.ok()) return std::make_unique<CgroupGuard>(*place);
  if (mode == Mode::kCgroup) return place.status();
  return std::make_unique<WatchdogGuard>(std::string(place.status().message()));
}

}  // namespace kmosaic
