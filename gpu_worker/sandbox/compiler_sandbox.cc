#include "gpu_worker/sandbox/compiler_sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/install.h"
#include "common/base/status.h"
#include "gpu_worker/sandbox/output_buffer.h"
#include "gpu_worker/sandbox/seccomp_policy.h"
#include "gpu_worker/sandbox/spawn.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

constexpr int kSeccompFd = 3;
constexpr int kStatusFd = 4;
constexpr int kCheckMilliseconds = 50;
// After the end of the command: for what it left behind to go.
constexpr absl::Duration kEndTimeout = absl::Seconds(10);

constexpr const char* kEnvironment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp",
                                        "TMPDIR=/tmp", "LANG=C.UTF-8"};

void Add(std::vector<std::string>& arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ReadablePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) < 0) return ErrnoStatus(errno, "pipe");
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return std::pair<UniqueFd, UniqueFd>{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// What bwrap wrote to its status descriptor.
struct BubblewrapStatus {
  bool started = false;
  std::optional<int> exit_code;
};

BubblewrapStatus ParseStatus(const std::string& text) {
  BubblewrapStatus status;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) continue;
    if (object.contains("child-pid")) status.started = true;
    auto code = object.find("exit-code");
    if (code != object.end() && code->is_number_integer()) status.exit_code = code->get<int>();
  }
  return status;
}

bool HasFileOfSize(const std::string& directory, uint64_t bytes) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && entry->file_size(ignored) >= bytes) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> BubblewrapArguments(const std::string& bwrap,
                                             const SandboxedCommand& command) {
  std::vector<std::string> arguments = {bwrap,
                                        "--unshare-user",
                                        "--unshare-pid",
                                        "--unshare-net",
                                        "--unshare-ipc",
                                        "--unshare-uts",
                                        "--unshare-cgroup-try",
                                        "--disable-userns",
                                        "--uid",
                                        "65534",
                                        "--gid",
                                        "65534",
                                        "--hostname",
                                        "sandbox",
                                        "--die-with-parent",
                                        "--new-session",
                                        "--cap-drop",
                                        "ALL"};
  // The system's folders as they are: directories, or links into /usr.
  for (const char* name : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"}) {
    std::error_code error;
    if (fs::is_symlink(name, error)) {
      Add(arguments, {"--symlink", fs::read_symlink(name, error).string(), name});
    } else {
      Add(arguments, {"--ro-bind-try", name, name});
    }
  }
  Add(arguments, {"--dir",
                  "/etc",
                  "--ro-bind-try",
                  "/etc/ld.so.cache",
                  "/etc/ld.so.cache",
                  "--ro-bind-try",
                  "/etc/alternatives",
                  "/etc/alternatives",
                  "--proc",
                  "/proc",
                  "--dev",
                  "/dev",
                  "--size",
                  absl::StrCat(command.tmp_bytes),
                  "--tmpfs",
                  "/dev/shm",
                  "--remount-ro",
                  "/dev",
                  "--size",
                  absl::StrCat(command.tmp_bytes),
                  "--perms",
                  "1777",
                  "--tmpfs",
                  "/tmp"});
  for (const std::string& path : command.readable) Add(arguments, {"--ro-bind", path, path});
  Add(arguments, {"--bind", command.directory, command.directory, "--remount-ro", "/", "--chdir",
                  command.directory, "--clearenv"});
  auto set = [&](const std::string& variable) {
    size_t equals = variable.find('=');
    Add(arguments, {"--setenv", variable.substr(0, equals),
                    equals == std::string::npos ? "" : variable.substr(equals + 1)});
  };
  for (const char* variable : kEnvironment) set(variable);
  for (const std::string& variable : command.env) set(variable);
  Add(arguments,
      {"--seccomp", absl::StrCat(kSeccompFd), "--json-status-fd", absl::StrCat(kStatusFd), "--"});
  arguments.insert(arguments.end(), command.argv.begin(), command.argv.end());
  return arguments;
}

absl::StatusOr<std::unique_ptr<CompilerSandbox>> CompilerSandbox::Create(MemoryGuard* guard,
                                                                         bool unsandboxed) {
  std::unique_ptr<CompilerSandbox> sandbox(new CompilerSandbox(guard, unsandboxed));
  if (unsandboxed) return sandbox;
  KMOSAIC_ASSIGN_OR_RETURN(sandbox->seccomp_, MakeSeccompProgram());
  std::error_code error;
  fs::path directory = fs::temp_directory_path(error) / absl::StrCat("kmosaic-probe-", getpid());
  fs::create_directories(directory, error);
  SandboxedCommand probe;
  probe.argv = {"/bin/true"};
  probe.directory = directory.string();
  probe.wall_limit = absl::Seconds(20);
  std::string causes;
  // The system's first: where user namespaces are restricted, its path is what is let through.
  // It may be too old, or not there; a bundle has its own.
  for (const std::string& name : {std::string("bwrap"), ProgramPath("bwrap")}) {
    auto bwrap = FindProgram(name);
    if (!bwrap.ok()) continue;
    sandbox->bwrap_ = *bwrap;
    auto outcome = sandbox->Run(probe);
    if (outcome.ok() && outcome->succeeded()) {
      fs::remove_all(directory, error);
      return sandbox;
    }
    absl::StrAppend(&causes, *bwrap, " cannot make a sandbox here: ",
                    outcome.ok() ? outcome->output : std::string(outcome.status().message()), "\n");
  }
  fs::remove_all(directory, error);
  if (causes.empty()) {
    return absl::FailedPreconditionError(
        "bubblewrap, which confines compilers, is not installed: install the package 'bubblewrap' "
        "(apt-get, dnf, zypper, pacman), version 0.8 or newer");
  }
  return absl::FailedPreconditionError(
      absl::StrCat(causes,
                   "Unprivileged user namespaces must be allowed, or the worker run as root; "
                   "bubblewrap 0.8 or newer is needed"));
}

absl::StatusOr<CommandOutcome> CompilerSandbox::Run(const SandboxedCommand& command) const {
  KMOSAIC_ASSIGN_OR_RETURN(auto output, ReadablePipe());
  KMOSAIC_ASSIGN_OR_RETURN(auto status, ReadablePipe());
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<GuardedGroup> group,
                           guard_->NewGroup(command.memory_bytes, command.processes));
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd seccomp;
  SpawnRequest request;
  request.fds = {{null.get(), 0}, {output.second.get(), 1}, {output.second.get(), 2}};
  if (unsandboxed_) {
    request.argv = command.argv;
    request.env.assign(std::begin(kEnvironment), std::end(kEnvironment));
    request.env.insert(request.env.end(), command.env.begin(), command.env.end());
    request.working_directory = command.directory;
  } else {
    request.argv = BubblewrapArguments(bwrap_, command);
    // A descriptor with an offset of its own: bwrap reads it, others may at once.
    seccomp = UniqueFd(
        open(absl::StrCat("/proc/self/fd/", seccomp_.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!seccomp.valid()) return ErrnoStatus(errno, "open the seccomp program");
    request.fds.push_back({seccomp.get(), kSeccompFd});
    request.fds.push_back({status.second.get(), kStatusFd});
  }
  request.join_fds = group->join_fds();
  rlim_t cpu = static_cast<rlim_t>(absl::ToInt64Seconds(command.wall_limit)) + 5;
  request.limits = {{RLIMIT_CORE, 1}, {RLIMIT_FSIZE, command.file_bytes}, {RLIMIT_CPU, cpu}};

  absl::Time started = absl::Now();
  absl::Time end = started + command.wall_limit;
  KMOSAIC_ASSIGN_OR_RETURN(SpawnedProcess process, Spawn(request));
  output.second.Reset();
  status.second.Reset();
  group->Watch(process.pid, process.pidfd.get());

  CommandOutcome outcome;
  outcome.sandboxed = !unsandboxed_;
  OutputBuffer printed(command.output_bytes / 2, command.output_bytes - command.output_bytes / 2);
  OutputBuffer status_text(4096, 4096);
  bool output_open = true;
  bool killed = false;
  auto kill_all = [&] {
    killed = true;
    if (unsandboxed_) kill(-process.pid, SIGKILL);
    syscall(SYS_pidfd_send_signal, process.pidfd.get(), SIGKILL, nullptr, 0);
  };
  while (true) {
    pollfd fds[] = {{process.pidfd.get(), POLLIN, 0},
                    {output_open ? output.first.get() : -1, POLLIN, 0}};
    poll(fds, std::size(fds), kCheckMilliseconds);
    if (fds[1].revents != 0) {
      auto closed = printed.Drain(output.first.get());
      output_open = closed.ok() && !*closed;
    }
    if (fds[0].revents != 0) break;
    if (killed) continue;
    if (absl::Now() >= end) {
      outcome.timed_out = true;
      kill_all();
    } else if (command.cancelled && command.cancelled()) {
      outcome.was_cancelled = true;
      kill_all();
    } else if (group->Check()) {
      kill_all();
    }
  }
  if (unsandboxed_) kill(-process.pid, SIGKILL);
  int wait_status = Reap(process.pid);
  // The end of the pipe tells that nobody is left who could write.
  absl::Time patience = absl::Now() + kEndTimeout;
  while (output_open && absl::Now() < patience) {
    pollfd rest{output.first.get(), POLLIN, 0};
    poll(&rest, 1, kCheckMilliseconds);
    auto closed = printed.Drain(output.first.get());
    output_open = closed.ok() && !*closed;
  }
  outcome.wall = absl::Now() - started;
  outcome.output = printed.Text();
  outcome.output_dropped_bytes = printed.dropped_bytes();
  auto excess = group->Check();
  outcome.memory_exceeded = excess == Excess::kMemory;
  outcome.processes_exceeded = excess == Excess::kProcesses;

  if (WIFSIGNALED(wait_status)) {
    outcome.signal_number = WTERMSIG(wait_status);
    outcome.exit_code = 128 + outcome.signal_number;
  } else {
    outcome.exit_code = WEXITSTATUS(wait_status);
    // bwrap, like a shell, tells of a signal so.
    if (outcome.exit_code > 128 && outcome.exit_code < 128 + 65) {
      outcome.signal_number = outcome.exit_code - 128;
    }
  }
  outcome.file_limit =
      outcome.signal_number == SIGXFSZ ||
      (outcome.exit_code != 0 && HasFileOfSize(command.directory, command.file_bytes));
  if (!unsandboxed_ && !killed && !excess) {
    (void)status_text.Drain(status.first.get());
    BubblewrapStatus told = ParseStatus(status_text.Text());
    if (!told.exit_code) {
      return absl::UnavailableError(
          absl::StrCat("bubblewrap did not run ", command.argv[0], ": ", outcome.output));
    }
  }
  return outcome;
}

}  // namespace kmosaic
