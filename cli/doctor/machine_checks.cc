#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cli/doctor/check.h"
#include "cli/output/numbers.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kGibibyte = uint64_t{1} << 30;
// From linux/magic.h.
constexpr long kCgroup2Magic = 0x63677270;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// In a child, since namespaces cannot be left again; 0 or the errno.
int TryUserNamespace() {
  pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    int flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS;
    _exit(unshare(flags) == 0 ? 0 : errno & 0x7F);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return EINVAL;
  return WEXITSTATUS(status);
}

Check Namespaces() {
  int error = TryUserNamespace();
  if (error == 0)
    return {"namespaces", CheckResult::kOk, "user, process, network, IPC and mount namespaces", ""};
  std::string fix = "allow unprivileged user namespaces: sysctl user.max_user_namespaces=15000";
  if (FirstLine("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    fix = "sysctl kernel.unprivileged_userns_clone=1";
  } else if (FirstLine("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    fix =
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for the "
        "worker";
  } else if (fs::exists("/.dockerenv")) {
    fix =
        "start the container with --security-opt seccomp=unconfined (or a profile that allows "
        "unshare)";
  }
  return {"namespaces", CheckResult::kFail,
          absl::StrCat("cannot be made: ", std::strerror(error),
                       "; a worker refuses to run without its sandbox"),
          fix};
}

Check ControlGroups() {
  struct statfs info {};
  if (statfs("/sys/fs/cgroup", &info) != 0) {
    return {"memory limits", CheckResult::kWarn,
            "no control groups; resource limits and a watchdog instead",
            "mount cgroup2 at /sys/fs/cgroup for exact limits"};
  }
  bool v2 = info.f_type == kCgroup2Magic;
  std::string version = v2 ? "cgroup v2" : "cgroup v1";
  std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  if (access(root.c_str(), W_OK) == 0) return {"memory limits", CheckResult::kOk, version, ""};
  return {"memory limits", CheckResult::kWarn,
          absl::StrCat(version, ", not writable; resource limits and a watchdog instead"),
          "run the worker where its control group is delegated (systemd: Delegate=yes) for exact "
          "limits"};
}

Check Loopback() {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
               listen(fd, 1) == 0;
  int error = errno;
  if (fd >= 0) close(fd);
  if (bound) return {"loopback", CheckResult::kOk, "127.0.0.1 takes a port", ""};
  return {"loopback", CheckResult::kFail,
          absl::StrCat("cannot listen on 127.0.0.1: ", std::strerror(error)),
          "bring the loopback interface up: ip link set lo up"};
}

Check DiskSpace(const std::string& data) {
  // The directory need not be there yet.
  fs::path at = fs::path(data);
  std::error_code error;
  while (!fs::exists(at, error) && at.has_parent_path() && at != at.parent_path())
    at = at.parent_path();
  struct statvfs info {};
  if (statvfs(at.c_str(), &info) != 0) {
    return {"disk", CheckResult::kFail,
            absl::StrCat("cannot ask about ", at.string(), ": ", std::strerror(errno)),
            "give a data directory with --data"};
  }
  uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  std::string found = absl::StrCat(ShortBytes(free_bytes), " free for ", data);
  if (free_bytes < kGibibyte)
    return {"disk", CheckResult::kFail, found,
            "free at least 5 GiB, or use another place with --data"};
  if (free_bytes < 5 * kGibibyte)
    return {"disk", CheckResult::kWarn, found, "large jobs need more than 5 GiB"};
  return {"disk", CheckResult::kOk, found, ""};
}

Check GpuDriver() {
  std::string version = FirstLine("/proc/driver/nvidia/version");
  std::error_code error;
  bool device = fs::exists("/dev/nvidiactl", error);
  if (!version.empty() && device) return {"GPU driver", CheckResult::kOk, version, ""};
  if (!version.empty()) {
    return {"GPU driver", CheckResult::kWarn,
            absl::StrCat(version, ", but there is no /dev/nvidiactl"),
            "run nvidia-modprobe, or give the container its devices (--gpus all)"};
  }
  return {"GPU driver", CheckResult::kWarn,
          "none; kernels run on the emulated device, without times",
          "on a machine with an NVIDIA GPU, install its driver"};
}

}  // namespace

std::string CheckResultName(CheckResult result) {
  if (result == CheckResult::kOk) return "ok";
  return result == CheckResult::kWarn ? "warn" : "fail";
}

std::vector<Check> MachineChecks(const std::string& data) {
  return {Namespaces(), ControlGroups(), Loopback(), DiskSpace(data), GpuDriver()};
}

}  // namespace kmosaic
