#include "gpu_worker/sandbox/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "gpu_worker/sandbox/kernel_file.h"
#include "gpu_worker/sandbox/process_tree.h"

namespace kmosaic {
namespace {

constexpr char kPrefix[] = "kmosaic-";
constexpr char kLeaf[] = "kmosaic-main";

absl::Status WriteFile(const std::string& path, const std::string& text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || write(fd.get(), text.data(), text.size()) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("write ", path, ": ", ErrnoStatus(errno, text).ToString()));
  }
  return absl::OkStatus();
}

// The number after `key` and a blank in a flat keyed file.
uint64_t KeyedValue(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    uint64_t value;
    if (fields.size() == 2 && fields[0] == key && absl::SimpleAtoi(fields[1], &value)) return value;
  }
  return 0;
}

struct Mount {
  std::string root;   // folder of the hierarchy that is mounted
  std::string point;  // where
  std::string type;
  std::set<std::string> options;
};

std::vector<Mount> ParseMountinfo(const std::string& text) {
  std::vector<Mount> mounts;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<std::string> fields = absl::StrSplit(line, ' ');
    // proc(5): id, parent, major:minor, root, mount point, options, optional fields..., "-",
    // type, source, super options.
    size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 3 >= fields.size()) continue;
    mounts.push_back(
        {fields[3], fields[4], fields[dash + 1], absl::StrSplit(fields[dash + 3], ',')});
  }
  return mounts;
}

// The folder of `group` (a path in the hierarchy) under `mount`.
std::string FolderOf(const Mount& mount, const std::string& group) {
  std::string inner = group;
  if (mount.root != "/" && absl::StartsWith(inner, mount.root))
    inner = inner.substr(mount.root.size());
  // Outside of this cgroup namespace: the top that we can see.
  if (absl::StartsWith(inner, "/..")) inner.clear();
  if (inner == "/") inner.clear();
  return mount.point + inner;
}

void KillAll(const std::string& folder) {
  for (absl::string_view line : absl::StrSplit(ReadKernelFile(folder + "/cgroup.procs"), '\n')) {
    pid_t pid;
    if (absl::SimpleAtoi(line, &pid) && pid > 0) kill(pid, SIGKILL);
  }
}

bool RemoveFolder(const std::string& folder, absl::Duration patience) {
  for (absl::Duration waited; rmdir(folder.c_str()) < 0; waited += absl::Milliseconds(2)) {
    // Busy until the last zombie in it is reaped.
    if (errno != EBUSY || waited >= patience) return errno == ENOENT;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace

absl::StatusOr<CgroupPlace> LocateCgroups(const std::string& self_cgroup,
                                          const std::string& self_mountinfo) {
  std::vector<Mount> mounts = ParseMountinfo(self_mountinfo);
  CgroupPlace place;
  std::string unified;
  for (absl::string_view line : absl::StrSplit(self_cgroup, '\n')) {
    std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[0] == "0" && fields[1].empty()) unified = fields[2];
    std::set<std::string> controllers = absl::StrSplit(fields[1], ',');
    for (const Mount& mount : mounts) {
      if (mount.type != "cgroup") continue;
      if (controllers.count("memory") != 0 && mount.options.count("memory") != 0) {
        place.memory = FolderOf(mount, fields[2]);
      }
      if (controllers.count("pids") != 0 && mount.options.count("pids") != 0) {
        place.pids = FolderOf(mount, fields[2]);
      }
    }
  }
  if (!place.memory.empty() && !place.pids.empty()) {
    place.version = 1;
    return place;
  }
  for (const Mount& mount : mounts) {
    if (mount.type == "cgroup2" && !unified.empty()) {
      std::string folder = FolderOf(mount, unified);
      return CgroupPlace{2, folder, folder};
    }
  }
  return absl::NotFoundError("no control groups with memory and pids are mounted");
}

absl::Status PrepareCgroups(const CgroupPlace& place) {
  if (place.version == 1) {
    for (const std::string& folder : {place.memory, place.pids}) {
      if (access(folder.c_str(), W_OK) != 0) {
        return absl::FailedPreconditionError(absl::StrCat(folder, " is not writable"));
      }
    }
    return absl::OkStatus();
  }
  const std::string& own = place.memory;
  std::set<std::string> there =
      absl::StrSplit(ReadKernelFile(own + "/cgroup.controllers"), absl::ByAnyChar(" \n"));
  if (there.count("memory") == 0 || there.count("pids") == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(own, " has no memory and pids controllers (systemd: Delegate=yes)"));
  }
  std::set<std::string> shared =
      absl::StrSplit(ReadKernelFile(own + "/cgroup.subtree_control"), absl::ByAnyChar(" \n"));
  if (shared.count("memory") != 0 && shared.count("pids") != 0) return absl::OkStatus();
  std::map<pid_t, ProcessInfo> processes = ListProcesses();
  std::vector<pid_t> family = Descendants(processes, getpid());
  std::set<pid_t> ours(family.begin(), family.end());
  std::vector<pid_t> members;
  for (absl::string_view line : absl::StrSplit(ReadKernelFile(own + "/cgroup.procs"), '\n')) {
    pid_t pid;
    if (absl::SimpleAtoi(line, &pid)) members.push_back(pid);
  }
  for (pid_t pid : members) {
    if (ours.count(pid) == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "process ", pid, " shares the control group ", own, "; start the worker in its own"));
    }
  }
  std::string leaf = absl::StrCat(own, "/", kLeaf);
  if (mkdir(leaf.c_str(), 0755) < 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("make ", leaf, ": ", ErrnoStatus(errno, "mkdir").ToString()));
  }
  for (pid_t pid : members) {
    KMOSAIC_RETURN_IF_ERROR(WriteFile(leaf + "/cgroup.procs", absl::StrCat(pid)));
  }
  return WriteFile(own + "/cgroup.subtree_control", "+memory +pids");
}

absl::StatusOr<Cgroup> Cgroup::Create(const CgroupPlace& place, const std::string& name,
                                      uint64_t memory_bytes, uint64_t processes) {
  Cgroup group;
  group.version_ = place.version;
  for (const std::string& parent : std::set<std::string>{place.memory, place.pids}) {
    std::string folder = absl::StrCat(parent, "/", name);
    if (mkdir(folder.c_str(), 0755) < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("make ", folder, ": ", ErrnoStatus(errno, "mkdir").ToString()));
    }
    group.folders_.push_back(folder);
  }
  std::string memory = absl::StrCat(place.memory, "/", name);
  std::string pids = absl::StrCat(place.pids, "/", name);
  if (place.version == 1) {
    KMOSAIC_RETURN_IF_ERROR(
        WriteFile(memory + "/memory.limit_in_bytes", absl::StrCat(memory_bytes)));
    // Absent where the kernel does not account swap.
    if (access((memory + "/memory.memsw.limit_in_bytes").c_str(), W_OK) == 0) {
      KMOSAIC_RETURN_IF_ERROR(
          WriteFile(memory + "/memory.memsw.limit_in_bytes", absl::StrCat(memory_bytes)));
    }
  } else {
    KMOSAIC_RETURN_IF_ERROR(WriteFile(memory + "/memory.max", absl::StrCat(memory_bytes)));
    if (access((memory + "/memory.swap.max").c_str(), W_OK) == 0) {
      KMOSAIC_RETURN_IF_ERROR(WriteFile(memory + "/memory.swap.max", "0"));
    }
  }
  KMOSAIC_RETURN_IF_ERROR(WriteFile(pids + "/pids.max", absl::StrCat(processes)));
  for (const std::string& folder : group.folders_) {
    UniqueFd fd(open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) {
      return absl::FailedPreconditionError(
          absl::StrCat("open ", folder, "/cgroup.procs: ", ErrnoStatus(errno, "open").ToString()));
    }
    group.join_fds_.push_back(std::move(fd));
  }
  return group;
}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this != &other) {
    Remove();
    version_ = other.version_;
    folders_ = std::exchange(other.folders_, {});
    join_fds_ = std::move(other.join_fds_);
  }
  return *this;
}

Cgroup::~Cgroup() { Remove(); }

void Cgroup::Remove() {
  join_fds_.clear();
  for (const std::string& folder : folders_) RemoveFolder(folder, absl::Milliseconds(500));
  folders_.clear();
}

uint64_t Cgroup::MemoryKills() const {
  for (const std::string& folder : folders_) {
    std::string text =
        ReadKernelFile(folder + (version_ == 1 ? "/memory.oom_control" : "/memory.events"));
    if (!text.empty()) return KeyedValue(text, "oom_kill");
  }
  return 0;
}

uint64_t Cgroup::RefusedForks() const {
  for (const std::string& folder : folders_) {
    std::string text = ReadKernelFile(folder + "/pids.events");
    if (!text.empty()) return KeyedValue(text, "max");
  }
  return 0;
}

uint64_t Cgroup::PeakBytes() const {
  for (const std::string& folder : folders_) {
    uint64_t bytes;
    std::string text =
        ReadKernelFile(folder + (version_ == 1 ? "/memory.max_usage_in_bytes" : "/memory.peak"));
    if (absl::SimpleAtoi(text, &bytes)) return bytes;
  }
  return 0;
}

std::string CgroupName(uint64_t number) {
  auto self = ReadProcess(getpid());
  return absl::StrCat(kPrefix, getpid(), "-", self.ok() ? self->start_time : 0, "-", number);
}

int SweepCgroups(const CgroupPlace& place) {
  int removed = 0;
  for (const std::string& parent : std::set<std::string>{place.memory, place.pids}) {
    std::vector<std::string> stale;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
         entry.increment(error)) {
      std::string name = entry->path().filename().string();
      std::vector<std::string> parts = absl::StrSplit(name, '-');
      pid_t pid;
      uint64_t start;
      if (parts.size() != 4 || !absl::StartsWith(name, kPrefix) ||
          !absl::SimpleAtoi(parts[1], &pid) || !absl::SimpleAtoi(parts[2], &start)) {
        continue;
      }
      auto owner = ReadProcess(pid);
      if (owner.ok() && owner->start_time == start && !owner->zombie) continue;
      stale.push_back(entry->path().string());
    }
    for (const std::string& folder : stale) {
      KillAll(folder);
      if (RemoveFolder(folder, absl::Seconds(2))) ++removed;
    }
  }
  return removed;
}

}  // namespace kmosaic
