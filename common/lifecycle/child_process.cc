#include "common/lifecycle/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status.h"

extern char** environ;

namespace kmosaic {
namespace {

int PollMillis(absl::Time deadline) {
  // Bounded before it is converted: an infinite deadline has no number of milliseconds.
  absl::Duration left = std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (auto& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options) {
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env;
  if (!options.clear_env) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      std::string_view text = *entry;
      if (!options.env.count(std::string(text.substr(0, text.find('='))))) env.emplace_back(text);
    }
  }
  for (const auto& [name, value] : options.env) env.push_back(absl::StrCat(name, "=", value));
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> env_pointers = Pointers(env);

  int stdout_pipe[2] = {-1, -1};
  if (options.pipe_stdout && pipe2(stdout_pipe, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe2");
  // The child reports a failed exec through this pipe; it closes when exec succeeds.
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe2");

  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    if (options.die_with_parent) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
    }
    if (options.own_process_group) setpgid(0, 0);
    if (options.pipe_stdout) dup2(stdout_pipe[1], STDOUT_FILENO);
    if (!options.stderr_path.empty()) {
      int fd = open(options.stderr_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      if (fd >= 0) dup2(fd, STDERR_FILENO);
    }
    execvpe(argv_pointers[0], argv_pointers.data(), env_pointers.data());
    int error = errno;
    (void)!write(error_pipe[1], &error, sizeof error);
    _exit(127);
  }
  close(error_pipe[1]);
  if (stdout_pipe[1] >= 0) close(stdout_pipe[1]);
  ChildProcess child;
  child.pid_ = pid;
  child.stdout_fd_ = stdout_pipe[0];
  child.pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  int error = 0;
  ssize_t got = read(error_pipe[0], &error, sizeof error);
  close(error_pipe[0]);
  if (got == sizeof error) return ErrnoStatus(error, absl::StrCat("cannot run ", argv[0]));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  Destroy();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::exchange(other.pidfd_, -1);
  stdout_fd_ = std::exchange(other.stdout_fd_, -1);
  buffered_ = std::move(other.buffered_);
  exit_ = std::exchange(other.exit_, std::nullopt);
  return *this;
}

ChildProcess::~ChildProcess() { Destroy(); }

void ChildProcess::Destroy() {
  if (pid_ > 0 && !exit_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pidfd_ >= 0) close(pidfd_);
  if (stdout_fd_ >= 0) close(stdout_fd_);
  pid_ = pidfd_ = stdout_fd_ = -1;
}

absl::StatusOr<std::string> ChildProcess::ReadLine(absl::Duration timeout) {
  absl::Time deadline = absl::Now() + timeout;
  while (true) {
    if (size_t newline = buffered_.find('\n'); newline != std::string::npos) {
      std::string line = buffered_.substr(0, newline);
      buffered_.erase(0, newline + 1);
      return line;
    }
    pollfd event = {stdout_fd_, POLLIN, 0};
    int ready = poll(&event, 1, PollMillis(deadline));
    if (ready < 0 && errno == EINTR) continue;
    // A poll is an hour at most.
    if (ready == 0 && absl::Now() < deadline) continue;
    if (ready == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("no line within ", absl::FormatDuration(timeout)));
    }
    char chunk[4096];
    ssize_t got = read(stdout_fd_, chunk, sizeof chunk);
    if (got <= 0) return absl::UnavailableError("it closed its standard output");
    buffered_.append(chunk, static_cast<size_t>(got));
  }
}

void ChildProcess::Signal(int signal_number) const {
  if (pid_ > 0 && !exit_) kill(pid_, signal_number);
}

std::optional<int> ChildProcess::Poll() {
  if (exit_ || pid_ <= 0) return exit_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_;
}

std::optional<int> ChildProcess::Wait(absl::Duration timeout) {
  absl::Time deadline = absl::Now() + timeout;
  while (!Poll()) {
    pollfd event = {pidfd_, POLLIN, 0};
    int ready = poll(&event, 1, PollMillis(deadline));
    if (ready == 0 && absl::Now() >= deadline) return Poll();
  }
  return exit_;
}

}  // namespace kmosaic
