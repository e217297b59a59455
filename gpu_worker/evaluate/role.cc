#include "gpu_worker/evaluate/role.h"

#include "absl/time/clock.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

class ProcessRole : public Role {
 public:
  ProcessRole(std::unique_ptr<RoleProcess> process, std::string kind, const RoleObserver* observer)
      : process_(std::move(process)), kind_(std::move(kind)), observer_(observer) {}
  absl::StatusOr<Frame> Call(const nlohmann::json& request, const std::vector<int>& fds,
                             absl::Duration deadline) override {
    absl::Time start = absl::Now();
    auto reply = process_->Call(request, fds, deadline);
    (*observer_)(kind_, request.value("op", ""), absl::Now() - start);
    return reply;
  }
  const std::optional<RoleFailure>& failure() const override { return process_->failure(); }
  void Kill() override { process_->Kill(); }
  std::string Output() override { return process_->Output(); }

 private:
  std::unique_ptr<RoleProcess> process_;
  const std::string kind_;
  const RoleObserver* const observer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Role>> ZygoteRoles::Start(RoleKind kind, const RoleLimits& limits,
                                                         const std::vector<std::string>& readable) {
  absl::Time start = absl::Now();
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<RoleProcess> process,
                           zygote_->Fork(kind, limits, readable));
  observer_(RoleKindName(kind), "start", absl::Now() - start);
  return std::make_unique<ProcessRole>(std::move(process), RoleKindName(kind), &observer_);
}

}  // namespace kmosaic
