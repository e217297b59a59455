// The Python process that forks the roles.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_ZYGOTE_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_ZYGOTE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/sandbox/memory_guard.h"
#include "gpu_worker/sandbox/role_process.h"
#include "gpu_worker/sandbox/spawn.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

enum class RoleKind { kCollect, kReference, kCandidate, kLauncher };
// "collect", "reference" and so on.
const char* RoleKindName(RoleKind kind);

struct ZygoteOptions {
  std::string python;         // path of an interpreter with torch
  std::string harness_dir;    // gpu_worker/harness
  std::string enter_library;  // libkmosaic_enter.so
  // Absolute paths that every role may read besides the system's libraries and Python's
  // own files (the zygote finds those).
  std::vector<std::string> readable;
  // Device nodes that candidates and references may use ("/dev/nvidia0", ...).
  std::vector<std::string> devices;
  // The zygote's environment, "NAME=value", besides PATH, HOME, LANG and thread counts.
  // Roles can read it.
  std::vector<std::string> env;
  // Run roles without /proc where a fresh one cannot be mounted.
  bool allow_no_proc = false;
  // Explicit override: no isolation at all, limits only. Logged by the caller, and named
  // in every report.
  bool unsandboxed = false;
  absl::Duration start_timeout = absl::Minutes(3);
  absl::Duration fork_timeout = absl::Seconds(30);
};

struct ZygoteInfo {
  std::string python;  // versions
  std::string torch;
  std::string cuda;  // empty: torch built without it
};

// Thread-safe. A zygote that died is started again by itself; roles that it had forked
// die with it and fail with kInfrastructure.
class Zygote {
 public:
  // Waits until torch is imported. `guard` outlives the zygote and its roles.
  // FAILED_PRECONDITION with what Python printed when it does not come up.
  static absl::StatusOr<std::unique_ptr<Zygote>> Start(ZygoteOptions options, MemoryGuard* guard);
  // Roles still alive die with it.
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  // A fresh role in its sandbox, which waits for its first request. `readable`: paths that
  // it may read beyond the zygote's. UNAVAILABLE says what failed.
  absl::StatusOr<std::unique_ptr<RoleProcess>> Fork(RoleKind kind, const RoleLimits& limits,
                                                    const std::vector<std::string>& readable);

  ZygoteInfo info() const;
  // Times that it had to be started again.
  uint64_t restarts() const;
  // Of the zygote now; for tests.
  pid_t pid() const;
  bool unsandboxed() const { return options_.unsandboxed; }

 private:
  // A zygote that is up.
  struct Instance {
    SpawnedProcess process;
    UniqueFd control;  // non-blocking
    UniqueFd output;   // non-blocking
    ZygoteInfo info;
  };

  Zygote(ZygoteOptions options, MemoryGuard* guard, UniqueFd seccomp, std::string temp_folder);

  // The thread that starts zygotes: it lives as long as this object, since the kernel
  // kills a zygote when the thread that started it ends.
  void Run();
  absl::StatusOr<Instance> StartInstance() const;
  // Until the instance ends or this object does.
  void Attend(const Instance& instance);
  void PublishFailure(const absl::Status& status);
  // Waits; false when stopping.
  bool SleepUnlessStopping(absl::Duration duration);

  // One request and its answer. UNAVAILABLE: this zygote is of no use any more.
  // INTERNAL: it refused.
  absl::Status Request(const nlohmann::json& message, const std::vector<int>& fds);

  const ZygoteOptions options_;
  MemoryGuard* const guard_;
  const UniqueFd seccomp_;
  // TMPDIR of roles: in a sandbox its own /tmp; without one a folder of ours, removed at the end.
  const std::string temp_folder_;
  const UniqueFd stop_;  // eventfd

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<Instance> instance_;
  bool broken_ = false;  // the instance is of no use; its thread is about to replace it
  ZygoteInfo info_;
  absl::Status last_start_;
  uint64_t starts_ = 0;
  uint64_t failed_starts_ = 0;

  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_ZYGOTE_H_
