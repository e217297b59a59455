// The sandboxed processes of an evaluation, as its logic sees them. Production forks them
// from the zygote; tests answer by hand.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_ROLE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_ROLE_H_

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/sandbox/role_process.h"
#include "gpu_worker/sandbox/zygote.h"

namespace kmosaic {

// The contract of RoleProcess. The destructor ends the process.
class Role {
 public:
  virtual ~Role() = default;
  virtual absl::StatusOr<Frame> Call(const nlohmann::json& request, const std::vector<int>& fds,
                                     absl::Duration deadline) = 0;
  virtual const std::optional<RoleFailure>& failure() const = 0;
  // From any thread.
  virtual void Kill() = 0;
  // What it printed.
  virtual std::string Output() = 0;
};

// Thread-safe.
class RoleStarter {
 public:
  virtual ~RoleStarter() = default;
  // An error is the machine's trouble.
  virtual absl::StatusOr<std::unique_ptr<Role>> Start(RoleKind kind, const RoleLimits& limits,
                                                      const std::vector<std::string>& readable) = 0;
};

// Told how long each start ("start") and each call took, by role and "op"; from any thread.
using RoleObserver =
    std::function<void(const std::string& role, const std::string& op, absl::Duration took)>;

// Roles forked from `zygote`, which must outlive it.
class ZygoteRoles : public RoleStarter {
 public:
  explicit ZygoteRoles(
      Zygote* zygote,
      RoleObserver observer = [](const std::string&, const std::string&, absl::Duration) {})
      : zygote_(zygote), observer_(std::move(observer)) {}
  absl::StatusOr<std::unique_ptr<Role>> Start(RoleKind kind, const RoleLimits& limits,
                                              const std::vector<std::string>& readable) override;

 private:
  Zygote* const zygote_;
  const RoleObserver observer_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_ROLE_H_
