#include "gpu_worker/evaluate/role.h"

#include <utility>

#include "common/base/status.h"

namespace kmosaic {
namespace {

class ProcessRole : public Role {
 public:
  explicit ProcessRole(std::unique_ptr<RoleProcess> process) : process_(std::move(process)) {}
  absl::StatusOr<Frame> Call(const nlohmann::json& request, const std::vector<int>& fds,
                             absl::Duration deadline) override {
    return process_->Call(request, fds, deadline);
  }
  const std::optional<RoleFailure>& failure() const override { return process_->failure(); }
  void Kill() override { process_->Kill(); }
  std::string Output() override { return process_->Output(); }

 private:
  std::unique_ptr<RoleProcess> process_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Role>> ZygoteRoles::Start(RoleKind kind, const RoleLimits& limits,
                                                         const std::vector<std::string>& readable) {
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<RoleProcess> process,
                           zygote_->Fork(kind, limits, readable));
  return std::make_unique<ProcessRole>(std::move(process));
}

}  // namespace kmosaic
