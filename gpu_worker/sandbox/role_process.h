// One forked Python process in a sandbox, as the daemon sees it.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_ROLE_PROCESS_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_ROLE_PROCESS_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/sandbox/frame.h"
#include "gpu_worker/sandbox/memory_guard.h"
#include "gpu_worker/sandbox/output_buffer.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

struct RoleLimits {
  uint64_t memory_bytes = uint64_t{4} << 30;  // beyond what is shared with the zygote
  uint64_t processes = 64;                    // threads included
  uint64_t file_bytes = uint64_t{1} << 30;    // largest file
  uint64_t tmp_bytes = uint64_t{256} << 20;   // all of /tmp, and all of /dev/shm
  uint64_t cpu_seconds = 0;                   // per process; 0: no bound of its own
  uint64_t output_bytes = uint64_t{8} << 20;  // standard output and error together
};

// Why a role gives no more answers.
struct RoleFailure {
  enum class Kind {
    kDeadline,       // the call's deadline, or its CPU seconds
    kExited,         // ended by itself: exit_code
    kSignaled,       // died of signal_number
    kMemory,         // more than memory_bytes
    kProcessLimit,   // more than `processes`
    kOutputLimit,    // printed more than output_bytes
    kDiskLimit,      // wrote a file larger than file_bytes
    kProtocol,       // answered what is no answer: tampering
    kCancelled,      // Kill() was called
    kInfrastructure  // not its own doing: the sandbox could not be made, the zygote died
  };
  Kind kind;
  int exit_code = 0;
  int signal_number = 0;
  // For people.
  std::string detail;
};

// The destructor kills the role and all that it started. Call, Output and failure are for
// one thread at a time; Kill may be called from any.
class RoleProcess {
 public:
  // What the zygote's fork gave. For Zygote only.
  struct Parts {
    UniqueFd socket;  // non-blocking
    UniqueFd output;  // non-blocking
    UniqueFd status;  // non-blocking
    std::unique_ptr<GuardedGroup> group;
    RoleLimits limits;
  };

  // Waits until the sandbox stands. UNAVAILABLE with the step that failed.
  static absl::StatusOr<std::unique_ptr<RoleProcess>> Adopt(Parts parts, absl::Duration timeout);
  ~RoleProcess();
  RoleProcess(const RoleProcess&) = delete;
  RoleProcess& operator=(const RoleProcess&) = delete;

  // Sends a request with descriptors and waits for the answer. On failure the role is
  // dead, failure() says why, and the status is DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED
  // (memory, processes, output, disk), ABORTED (ended or died), DATA_LOSS (protocol),
  // CANCELLED or UNAVAILABLE (infrastructure). Every later call fails in the same way.
  absl::StatusOr<Frame> Call(const nlohmann::json& request, const std::vector<int>& fds,
                             absl::Duration deadline);

  // Nothing while it lives.
  const std::optional<RoleFailure>& failure() const { return failure_; }

  // Ends it now; a Call under way fails with kCancelled.
  void Kill();

  // What it printed so far: the first and the last 64 KiB.
  std::string Output();

  // Highest memory use; 0 where not known.
  uint64_t PeakMemoryBytes() { return group_ == nullptr ? 0 : group_->PeakBytes(); }

  // Pid of the sandbox's first process, in the daemon's view; for tests and logs.
  pid_t pid() const { return pid_; }

 private:
  explicit RoleProcess(Parts parts);

  absl::Status WaitUntilReady(absl::Time deadline);
  // Sleeps until something happens or `deadline`; `events` on the role's socket, 0: none.
  void Poll(short events, absl::Time deadline);
  void ReadStatus();
  void DrainOutput();
  // Kills, waits for the end, and fills failure_. Without `cause` the role's own end says
  // what happened.
  void Finish(std::optional<RoleFailure> cause);
  void WaitForEnd();
  RoleFailure OwnEnd() const;
  absl::Status FailureStatus() const;

  UniqueFd socket_;
  UniqueFd output_fd_;
  UniqueFd status_;
  UniqueFd pidfd_;
  std::unique_ptr<GuardedGroup> group_;
  const RoleLimits limits_;
  FrameReader reader_;
  OutputBuffer output_;
  bool output_open_ = true;
  bool socket_open_ = true;

  pid_t pid_ = -1;
  bool ready_ = false;
  bool status_closed_ = false;
  std::string enter_error_;
  std::optional<int> role_status_;
  std::optional<int> init_status_;
  std::optional<RoleFailure> failure_;
  UniqueFd cancel_;  // eventfd that Kill sets
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_ROLE_PROCESS_H_
