#include "gpu_worker/sandbox/role_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr uint32_t kMaxAnswerBytes = 16 << 20;
constexpr size_t kOutputPartBytes = 64 << 10;
// How often bounds that raise no event are looked at.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(50);
// A killed process that is still there after this hangs in the kernel.
constexpr absl::Duration kDeathTimeout = absl::Seconds(10);

using Kind = RoleFailure::Kind;

RoleFailure Infrastructure(std::string detail) {
  return RoleFailure{Kind::kInfrastructure, 0, 0, std::move(detail)};
}

}  // namespace

RoleProcess::RoleProcess(Parts parts)
    : socket_(std::move(parts.socket)),
      output_fd_(std::move(parts.output)),
      status_(std::move(parts.status)),
      group_(std::move(parts.group)),
      limits_(parts.limits),
      reader_(kMaxAnswerBytes),
      output_(kOutputPartBytes, kOutputPartBytes),
      cancel_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RoleProcess::~RoleProcess() {
  if (!failure_) Finish(RoleFailure{Kind::kCancelled, 0, 0, "no longer needed"});
}

absl::StatusOr<std::unique_ptr<RoleProcess>> RoleProcess::Adopt(Parts parts,
                                                                absl::Duration timeout) {
  std::unique_ptr<RoleProcess> role(new RoleProcess(std::move(parts)));
  KMOSAIC_RETURN_IF_ERROR(role->WaitUntilReady(absl::Now() + timeout));
  return role;
}

absl::Status RoleProcess::WaitUntilReady(absl::Time deadline) {
  while (!(ready_ && pidfd_.valid()) && enter_error_.empty() && !status_closed_ &&
         absl::Now() < deadline) {
    Poll(0, deadline);
  }
  if (ready_ && pidfd_.valid() && enter_error_.empty()) {
    if (group_ != nullptr) group_->Watch(pid_, pidfd_.get());
    return absl::OkStatus();
  }
  std::string what = "the sandbox came to an end before it stood";
  if (!enter_error_.empty()) {
    what = "enter the sandbox: " + enter_error_;
  } else if (!status_closed_) {
    what = "the sandbox did not stand in time";
  }
  if (std::string output = Output(); !output.empty()) absl::StrAppend(&what, "\n", output);
  Finish(Infrastructure(what));
  return FailureStatus();
}

void RoleProcess::Poll(short events, absl::Time deadline) {
  pollfd fds[] = {{status_closed_ ? -1 : status_.get(), POLLIN, 0},
                  {output_open_ ? output_fd_.get() : -1, POLLIN, 0},
                  {cancel_.get(), POLLIN, 0},
                  {socket_open_ && events != 0 ? socket_.get() : -1, events, 0}};
  absl::Duration left = std::clamp(deadline - absl::Now(), absl::ZeroDuration(), kCheckInterval);
  // Rounded up, so that the last wait does not spin.
  int timeout = static_cast<int>(absl::ToInt64Milliseconds(left + absl::Microseconds(999)));
  poll(fds, std::size(fds), timeout);
  if (fds[0].revents != 0) ReadStatus();
  if (fds[1].revents != 0) DrainOutput();
}

void RoleProcess::ReadStatus() {
  for (;;) {
    char bytes[2048];
    iovec place{bytes, sizeof bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t count = recvmsg(status_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
      status_closed_ = true;
      return;
    }
    if (cmsghdr* header = CMSG_FIRSTHDR(&message);
        header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      pidfd_.Reset(fd);
    }
    int32_t number = 0;
    if (count == 1 + static_cast<ssize_t>(sizeof number)) {
      std::memcpy(&number, bytes + 1, sizeof number);
    }
    switch (bytes[0]) {
      case 'P':
        pid_ = number;
        break;
      case 'R':
        ready_ = true;
        break;
      case 'E':
        enter_error_.assign(bytes + 1, static_cast<size_t>(count) - 1);
        break;
      case 'X':
        role_status_ = number;
        break;
      case 'Z':
        init_status_ = number;
        break;
      default:
        break;
    }
  }
}

void RoleProcess::DrainOutput() {
  auto end = output_.Drain(output_fd_.get());
  if (!end.ok() || *end) output_open_ = false;
}

absl::StatusOr<Frame> RoleProcess::Call(const nlohmann::json& request, const std::vector<int>& fds,
                                        absl::Duration deadline) {
  if (failure_) return FailureStatus();
  absl::Time end = absl::Now() + deadline;
  FrameWriter writer(request, fds);
  bool sent = false;
  while (true) {
    auto progress = sent ? reader_.Read(socket_.get()) : writer.Write(socket_.get());
    if (!progress.ok()) {
      if (absl::IsUnavailable(progress.status())) {
        // It is dying (or closed its socket and lives on): its end says which.
        socket_open_ = false;
        absl::Time patience = std::min(end, absl::Now() + kDeathTimeout);
        while (!role_status_ && !init_status_ && !status_closed_ && absl::Now() < patience) {
          Poll(0, patience);
        }
        if (role_status_ || init_status_ || status_closed_) {
          Finish(std::nullopt);
        } else {
          Finish(RoleFailure{Kind::kProtocol, 0, 0, "it closed its socket and went on"});
        }
      } else {
        Finish(RoleFailure{Kind::kProtocol, 0, 0, std::string(progress.status().message())});
      }
      return FailureStatus();
    }
    if (*progress && sent) return reader_.Take();
    if (*progress) {
      sent = true;
      continue;
    }
    std::optional<Excess> excess = group_ == nullptr ? std::nullopt : group_->Check();
    uint64_t value;
    if (excess || role_status_ || init_status_ || status_closed_) {
      Finish(std::nullopt);
    } else if (output_.total_bytes() > limits_.output_bytes) {
      Finish(RoleFailure{Kind::kOutputLimit, 0, 0,
                         absl::StrCat("printed more than ", limits_.output_bytes, " bytes")});
    } else if (read(cancel_.get(), &value, sizeof value) > 0) {
      Finish(RoleFailure{Kind::kCancelled, 0, 0, "killed on request"});
    } else if (absl::Now() >= end) {
      Finish(RoleFailure{Kind::kDeadline, 0, 0,
                         absl::StrCat("no answer within ", absl::FormatDuration(deadline))});
    }
    if (failure_) return FailureStatus();
    Poll(sent ? POLLIN : POLLOUT, end);
  }
}

void RoleProcess::Kill() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(cancel_.get(), &one, sizeof one);
  if (pidfd_.valid()) syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

std::string RoleProcess::Output() {
  if (output_open_) DrainOutput();
  return output_.Text();
}

void RoleProcess::Finish(std::optional<RoleFailure> cause) {
  // Looked at first: our own kill would hide it.
  std::optional<Excess> excess = group_ == nullptr ? std::nullopt : group_->Check();
  bool own_end = !cause.has_value();
  WaitForEnd();
  if (!excess && group_ != nullptr) excess = group_->Check();
  bool hides_excess = own_end || cause->kind == Kind::kDeadline;
  uint64_t value;
  if (excess && hides_excess) {
    failure_ =
        *excess == Excess::kMemory
            ? RoleFailure{Kind::kMemory, 0, 0,
                          absl::StrCat("used more than ", limits_.memory_bytes, " bytes of memory")}
            : RoleFailure{
                  Kind::kProcessLimit, 0, 0,
                  absl::StrCat("started more than ", limits_.processes, " processes and threads")};
  } else if (own_end && read(cancel_.get(), &value, sizeof value) > 0) {
    failure_ = RoleFailure{Kind::kCancelled, 0, 0, "killed on request"};
  } else if (own_end) {
    failure_ = OwnEnd();
  } else {
    failure_ = std::move(cause);
  }
  if (output_open_) DrainOutput();
  socket_.Reset();
  socket_open_ = false;
  // Lets the keeper reap init and go; its end of the socket closes last.
  shutdown(status_.get(), SHUT_WR);
  absl::Time patience = absl::Now() + kDeathTimeout;
  while (!status_closed_ && absl::Now() < patience) Poll(0, patience);
  status_.Reset();
  status_closed_ = true;
  if (group_ != nullptr) group_.reset();
}

void RoleProcess::WaitForEnd() {
  if (!pidfd_.valid()) return;
  // The role may have ended by itself a moment ago and init be on its way out.
  if (!role_status_) syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  absl::Time patience = absl::Now() + kDeathTimeout;
  pollfd gone{pidfd_.get(), POLLIN, 0};
  while (absl::Now() < patience) {
    int timeout = static_cast<int>(absl::ToInt64Milliseconds(patience - absl::Now())) + 1;
    if (poll(&gone, 1, timeout) > 0) break;
  }
  ReadStatus();
}

RoleFailure RoleProcess::OwnEnd() const {
  if (!role_status_) {
    if (!enter_error_.empty()) return Infrastructure("enter the sandbox: " + enter_error_);
    return Infrastructure("the sandbox was killed from outside (out of memory on this machine?)");
  }
  int status = *role_status_;
  if (!WIFSIGNALED(status)) {
    int code = WEXITSTATUS(status);
    return RoleFailure{Kind::kExited, code, 0, absl::StrCat("ended with exit code ", code)};
  }
  int number = WTERMSIG(status);
  RoleFailure failure{Kind::kSignaled, 0, number,
                      absl::StrCat("died of signal ", number, " (", strsignal(number), ")")};
  if (number == SIGXCPU) {
    failure.kind = Kind::kDeadline;
    failure.detail = absl::StrCat("used more than ", limits_.cpu_seconds, " CPU seconds");
  } else if (number == SIGXFSZ) {
    failure.kind = Kind::kDiskLimit;
    failure.detail = absl::StrCat("wrote a file larger than ", limits_.file_bytes, " bytes");
  }
  return failure;
}

absl::Status RoleProcess::FailureStatus() const {
  const std::string& detail = failure_->detail;
  switch (failure_->kind) {
    case Kind::kDeadline:
      return absl::DeadlineExceededError(detail);
    case Kind::kExited:
    case Kind::kSignaled:
      return absl::AbortedError(detail);
    case Kind::kMemory:
    case Kind::kProcessLimit:
    case Kind::kOutputLimit:
    case Kind::kDiskLimit:
      return absl::ResourceExhaustedError(detail);
    case Kind::kProtocol:
      return absl::DataLossError(detail);
    case Kind::kCancelled:
      return absl::CancelledError(detail);
    case Kind::kInfrastructure:
      return absl::UnavailableError(detail);
  }
  return absl::InternalError(detail);
}

}  // namespace kmosaic
