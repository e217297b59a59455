#include "gpu_worker/sandbox/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "gpu_worker/sandbox/enter.h"
#include "gpu_worker/sandbox/frame.h"
#include "gpu_worker/sandbox/output_buffer.h"
#include "gpu_worker/sandbox/seccomp_policy.h"

namespace kmosaic {
namespace {

constexpr int kControlFd = 3;
constexpr uint32_t kMaxControlBytes = 1 << 20;
constexpr absl::Duration kMaxBackoff = absl::Seconds(30);

// What programs on any distribution need to load their libraries. What is absent is left
// out.
constexpr const char* kSystemPaths[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"};

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> SocketPair(int type, bool near_blocks) {
  int fds[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) < 0) return ErrnoStatus(errno, "socketpair");
  std::pair<UniqueFd, UniqueFd> ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
  if (!near_blocks) fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return ends;
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> OutputPipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) < 0) return ErrnoStatus(errno, "pipe");
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return std::pair<UniqueFd, UniqueFd>{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// The next frame; UNAVAILABLE when the peer is gone, DEADLINE_EXCEEDED, CANCELLED when
// `stop` (a descriptor, or -1) can be read.
absl::StatusOr<Frame> Receive(int socket, absl::Time deadline, int stop) {
  FrameReader reader(kMaxControlBytes);
  while (true) {
    auto done = reader.Read(socket);
    if (!done.ok()) return done.status();
    if (*done) return reader.Take();
    absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the Python process did not answer in time");
    }
    pollfd fds[] = {{socket, POLLIN, 0}, {stop, POLLIN, 0}};
    poll(fds, std::size(fds), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (fds[1].revents != 0) return absl::CancelledError("the worker stops");
  }
}

}  // namespace

const char* RoleKindName(RoleKind kind) {
  switch (kind) {
    case RoleKind::kCollect:
      return "collect";
    case RoleKind::kReference:
      return "reference";
    case RoleKind::kLauncher:
      return "launcher";
    case RoleKind::kCandidate:
      return "candidate";
  }
  return "";
}

Zygote::Zygote(ZygoteOptions options, MemoryGuard* guard, UniqueFd seccomp, std::string temp_folder)
    : options_(std::move(options)),
      guard_(guard),
      seccomp_(std::move(seccomp)),
      temp_folder_(std::move(temp_folder)),
      stop_(eventfd(0, EFD_CLOEXEC)) {}

absl::StatusOr<std::unique_ptr<Zygote>> Zygote::Start(ZygoteOptions options, MemoryGuard* guard) {
  auto python = FindProgram(options.python);
  if (!python.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the Python interpreter ", options.python,
        " is not there: ", std::string(python.status().message()), "; set one that has torch"));
  }
  options.python = *python;
  KMOSAIC_ASSIGN_OR_RETURN(UniqueFd seccomp, MakeSeccompProgram());
  std::string temp_folder = "/tmp";
  if (options.unsandboxed) {
    temp_folder = (std::filesystem::temp_directory_path() / "kmosaic-roles-XXXXXX").string();
    if (mkdtemp(temp_folder.data()) == nullptr) {
      return ErrnoStatus(errno, absl::StrCat("making the roles' temporary folder ", temp_folder));
    }
  }
  std::unique_ptr<Zygote> zygote(
      new Zygote(std::move(options), guard, std::move(seccomp), std::move(temp_folder)));
  zygote->thread_ = std::thread([z = zygote.get()] { z->Run(); });
  std::unique_lock lock(zygote->mutex_);
  zygote->changed_.wait(lock, [&] { return zygote->starts_ + zygote->failed_starts_ > 0; });
  if (zygote->starts_ > 0) {
    lock.unlock();
    return zygote;
  }
  absl::Status status = zygote->last_start_;
  lock.unlock();
  return absl::FailedPreconditionError(std::string(status.message()));
}

Zygote::~Zygote() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  if (options_.unsandboxed) {
    std::error_code ignored;  // a role that is still dying may hold it
    std::filesystem::remove_all(temp_folder_, ignored);
  }
}

void Zygote::Run() {
  absl::Duration backoff = absl::Seconds(1);
  do {
    auto started = StartInstance();
    if (!started.ok()) {
      PublishFailure(started.status());
      if (!SleepUnlessStopping(backoff)) return;
      backoff = std::min(backoff * 2, kMaxBackoff);
      continue;
    }
    backoff = absl::Seconds(1);
    {
      std::lock_guard lock(mutex_);
      info_ = started->info;
      instance_ = *std::move(started);
      broken_ = false;
      ++starts_;
    }
    changed_.notify_all();
    // Only this thread replaces the instance, so it may look at it without the lock.
    Attend(*instance_);
    std::lock_guard lock(mutex_);
    syscall(SYS_pidfd_send_signal, instance_->process.pidfd.get(), SIGKILL, nullptr, 0);
    Reap(instance_->process.pid);
    instance_.reset();
  } while (SleepUnlessStopping(absl::ZeroDuration()));
}

bool Zygote::SleepUnlessStopping(absl::Duration duration) {
  pollfd stop{stop_.get(), POLLIN, 0};
  return poll(&stop, 1, static_cast<int>(absl::ToInt64Milliseconds(duration))) <= 0;
}

void Zygote::PublishFailure(const absl::Status& status) {
  {
    std::lock_guard lock(mutex_);
    last_start_ = status;
    ++failed_starts_;
  }
  changed_.notify_all();
  LogError("the Python process that forks evaluations does not start",
           {{"error", std::string(status.message())}});
}

absl::StatusOr<Zygote::Instance> Zygote::StartInstance() const {
  KMOSAIC_ASSIGN_OR_RETURN(auto control, SocketPair(SOCK_STREAM, /*near_blocks=*/false));
  KMOSAIC_ASSIGN_OR_RETURN(auto output, OutputPipe());
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));

  nlohmann::json readable = options_.readable;
  for (const char* path : kSystemPaths) readable.push_back(path);
  SpawnRequest request;
  request.argv = {options_.python,
                  "-I",
                  "-B",
                  options_.harness_dir + "/zygote.py",
                  "--parent",
                  std::to_string(getpid()),
                  "--control",
                  std::to_string(kControlFd),
                  "--library",
                  options_.enter_library,
                  "--readable",
                  readable.dump()};
  request.env = {"PATH=/usr/local/bin:/usr/bin:/bin",
                 "HOME=/tmp",
                 "TMPDIR=" + temp_folder_,
                 "LANG=C.UTF-8",
                 "OMP_NUM_THREADS=1",
                 "MKL_NUM_THREADS=1"};
  request.env.insert(request.env.end(), options_.env.begin(), options_.env.end());
  request.working_directory = "/";
  request.fds = {{null.get(), 0},
                 {output.second.get(), 1},
                 {output.second.get(), 2},
                 {control.second.get(), kControlFd}};
  auto process = Spawn(request);
  if (!process.ok()) return process.status();
  Instance instance{*std::move(process), std::move(control.first), std::move(output.first), {}};
  control.second.Reset();
  output.second.Reset();

  auto hello = Receive(instance.control.get(), absl::Now() + options_.start_timeout, stop_.get());
  if (!hello.ok()) {
    syscall(SYS_pidfd_send_signal, instance.process.pidfd.get(), SIGKILL, nullptr, 0);
    Reap(instance.process.pid);
    OutputBuffer printed(8192, 8192);
    (void)printed.Drain(instance.output.get());
    return absl::UnavailableError(absl::StrCat(
        options_.python, " with ", options_.harness_dir,
        "/zygote.py did not start: ", std::string(hello.status().message()), "\n", printed.Text()));
  }
  const nlohmann::json& message = hello->message;
  instance.info.python = message.value("python", "");
  instance.info.torch = message.value("torch", "");
  if (message.contains("cuda") && message["cuda"].is_string()) {
    instance.info.cuda = message["cuda"].get<std::string>();
  }
  return instance;
}

void Zygote::Attend(const Instance& instance) {
  OutputBuffer printed(8192, 8192);
  bool output_open = true;
  while (true) {
    pollfd fds[] = {{stop_.get(), POLLIN, 0},
                    {instance.process.pidfd.get(), POLLIN, 0},
                    {output_open ? instance.output.get() : -1, POLLIN, 0}};
    if (poll(fds, std::size(fds), -1) < 0) continue;
    if (fds[2].revents != 0) {
      auto end = printed.Drain(instance.output.get());
      output_open = end.ok() && !*end;
    }
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) {
      LogWarning("the Python process that forks evaluations ended; starting another",
                 {{"output", printed.Text()}});
      return;
    }
  }
}

absl::Status Zygote::Request(const nlohmann::json& message, const std::vector<int>& fds) {
  int socket = instance_->control.get();
  absl::Time deadline = absl::Now() + options_.fork_timeout;
  FrameWriter writer(message, fds);
  while (true) {
    auto sent = writer.Write(socket);
    if (!sent.ok()) return absl::UnavailableError(std::string(sent.status().message()));
    if (*sent) break;
    absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::UnavailableError("it takes no request");
    pollfd writable{socket, POLLOUT, 0};
    poll(&writable, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
  auto answer = Receive(socket, deadline, -1);
  if (!answer.ok()) return absl::UnavailableError(std::string(answer.status().message()));
  if (answer->message.value("ok", false)) return absl::OkStatus();
  return absl::InternalError(answer->message.value("error", "it refused without a reason"));
}

absl::StatusOr<std::unique_ptr<RoleProcess>> Zygote::Fork(
    RoleKind kind, const RoleLimits& limits, const std::vector<std::string>& readable) {
  absl::Status last;
  for (int attempt = 0; attempt < 2; ++attempt) {
    KMOSAIC_ASSIGN_OR_RETURN(auto socket, SocketPair(SOCK_STREAM, false));
    KMOSAIC_ASSIGN_OR_RETURN(auto status, SocketPair(SOCK_SEQPACKET, false));
    KMOSAIC_ASSIGN_OR_RETURN(auto output, OutputPipe());
    RoleProcess::Parts parts;
    auto group = guard_->NewGroup(limits.memory_bytes, limits.processes);
    if (!group.ok()) return absl::UnavailableError(std::string(group.status().message()));
    parts.group = *std::move(group);
    parts.limits = limits;
    parts.socket = std::move(socket.first);
    parts.status = std::move(status.first);
    parts.output = std::move(output.first);

    uint32_t flags = (options_.allow_no_proc ? KMOSAIC_ENTER_ALLOW_NO_PROC : 0) |
                     (options_.unsandboxed ? KMOSAIC_ENTER_UNSANDBOXED : 0);
    // The guard tells an excess of processes; the kernel's own limit is a second line.
    uint64_t process_limit = limits.processes + 64;
    nlohmann::json message = {
        {"op", "fork"},
        {"role", RoleKindName(kind)},
        {"limits",
         {{"processes", process_limit},
          {"file_bytes", limits.file_bytes},
          {"cpu_seconds", limits.cpu_seconds},
          {"tmp_bytes", limits.tmp_bytes}}},
        {"readable", readable},
        {"devices", kind == RoleKind::kCollect ? std::vector<std::string>() : options_.devices},
        {"flags", flags}};
    std::vector<int> fds = {socket.second.get(), output.second.get(), seccomp_.get(),
                            status.second.get()};
    for (int fd : parts.group->join_fds()) fds.push_back(fd);
    {
      std::unique_lock lock(mutex_);
      bool up = changed_.wait_for(lock, absl::ToChronoMilliseconds(options_.start_timeout),
                                  [&] { return instance_ && !broken_; });
      if (!up) {
        return absl::UnavailableError(
            absl::StrCat("no Python process to fork from: ", std::string(last_start_.message())));
      }
      last = Request(message, fds);
      // Its thread sees it go and starts another.
      if (absl::IsUnavailable(last)) {
        syscall(SYS_pidfd_send_signal, instance_->process.pidfd.get(), SIGKILL, nullptr, 0);
        broken_ = true;
      }
    }
    // Ours must go: the ends of streams are what tells that a role is gone.
    socket.second.Reset();
    status.second.Reset();
    output.second.Reset();
    if (last.ok()) {
      auto role = RoleProcess::Adopt(std::move(parts), options_.fork_timeout);
      if (role.ok()) return role;
      last = role.status();
    }
    if (!absl::IsUnavailable(last)) break;
  }
  return absl::UnavailableError(
      absl::StrCat("fork of a ", RoleKindName(kind), " process: ", std::string(last.message())));
}

ZygoteInfo Zygote::info() const {
  std::lock_guard lock(mutex_);
  return info_;
}

uint64_t Zygote::restarts() const {
  std::lock_guard lock(mutex_);
  return starts_ > 0 ? starts_ - 1 : 0;
}

pid_t Zygote::pid() const {
  std::lock_guard lock(mutex_);
  return instance_ ? instance_->process.pid : -1;
}

}  // namespace kmosaic
