#include "gpu_worker/sandbox/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

enum class Step : int { kParent, kFds, kGroup, kLimit, kDirectory, kExec };

struct Failure {
  Step step;
  int error;
};

const char* StepName(Step step) {
  switch (step) {
    case Step::kParent:
      return "the parent ended";
    case Step::kFds:
      return "descriptors";
    case Step::kGroup:
      return "join the control group";
    case Step::kLimit:
      return "setrlimit";
    case Step::kDirectory:
      return "chdir";
    case Step::kExec:
      return "exec";
  }
  return "";
}

// Everything the child needs, made before it exists.
struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> env;
  std::vector<int> sources;
  int report_fd = -1;
  pid_t parent = -1;
};

[[noreturn]] void Fail(int report_fd, Step step) {
  Failure failure{step, errno};
  // Nothing can be done when the report itself fails; the exit code remains.
  [[maybe_unused]] ssize_t written = write(report_fd, &failure, sizeof failure);
  _exit(127);
}

// In the child: system calls only.
[[noreturn]] void RunChild(const SpawnRequest& request, Prepared& prepared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != prepared.parent) Fail(prepared.report_fd, Step::kParent);
  if (request.new_session) setsid();
  struct sigaction defaults = {};
  defaults.sa_handler = SIG_DFL;
  for (int number : {SIGPIPE, SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
    sigaction(number, &defaults, nullptr);
  }
  for (int fd : request.join_fds) {
    if (write(fd, "0", 1) < 0) Fail(prepared.report_fd, Step::kGroup);
  }
  if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
    Fail(prepared.report_fd, Step::kFds);
  }
  for (size_t i = 0; i < request.fds.size(); ++i) {
    if (dup2(prepared.sources[i], request.fds[i].second) < 0) {
      Fail(prepared.report_fd, Step::kFds);
    }
  }
  for (const auto& [which, value] : request.limits) {
    rlimit current;
    rlimit limit{value, value};
    if (getrlimit(static_cast<__rlimit_resource>(which), &current) == 0 &&
        current.rlim_max != RLIM_INFINITY && current.rlim_max < value) {
      limit = {current.rlim_max, current.rlim_max};
    }
    if (setrlimit(static_cast<__rlimit_resource>(which), &limit) < 0) {
      Fail(prepared.report_fd, Step::kLimit);
    }
  }
  if (!request.working_directory.empty() && chdir(request.working_directory.c_str()) < 0) {
    Fail(prepared.report_fd, Step::kDirectory);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(prepared.argv[0], prepared.argv.data(), prepared.env.data());
  Fail(prepared.report_fd, Step::kExec);
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<SpawnedProcess> Spawn(const SpawnRequest& request) {
  Prepared prepared;
  prepared.argv = Pointers(request.argv);
  prepared.env = Pointers(request.env);
  prepared.parent = getpid();
  int report[2];
  if (pipe2(report, O_CLOEXEC) < 0) return ErrnoStatus(errno, "pipe");
  UniqueFd report_read(report[0]);
  UniqueFd report_write(report[1]);
  // Numbers above all targets, so that placing one descriptor does not close another.
  int lowest = 3;
  for (const auto& fd : request.fds) lowest = std::max(lowest, fd.second + 1);
  std::vector<UniqueFd> owned;
  for (const auto& fd : request.fds) {
    owned.emplace_back(fcntl(fd.first, F_DUPFD_CLOEXEC, lowest));
    if (!owned.back().valid()) return ErrnoStatus(errno, "duplicate a descriptor");
    prepared.sources.push_back(owned.back().get());
  }
  owned.emplace_back(fcntl(report_write.get(), F_DUPFD_CLOEXEC, lowest));
  if (!owned.back().valid()) return ErrnoStatus(errno, "duplicate a descriptor");
  prepared.report_fd = owned.back().get();
  report_write.Reset();

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  long pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
  if (pid == 0) RunChild(request, prepared);
  int clone_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return ErrnoStatus(clone_error, "clone");
  SpawnedProcess process{static_cast<pid_t>(pid), UniqueFd(pidfd)};
  owned.clear();

  Failure failure;
  ssize_t count;
  do {
    count = read(report_read.get(), &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return process;
  Reap(process.pid);
  std::string what = absl::StrCat("start ", request.argv[0], ": ", StepName(failure.step));
  if (failure.step == Step::kExec && failure.error == ENOENT) {
    return absl::NotFoundError(absl::StrCat("no program ", request.argv[0]));
  }
  return ErrnoStatus(failure.error, what);
}

int Reap(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

absl::StatusOr<std::string> FindProgram(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (access(program.c_str(), X_OK) == 0) return program;
    return absl::NotFoundError(absl::StrCat("no program ", program));
  }
  const char* path = getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    std::string candidate = absl::StrCat(folder, "/", program);
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("no program ", program, " in PATH"));
}

}  // namespace kmosaic
