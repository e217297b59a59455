#include "gpu_worker/evaluate/device_use.h"

#include "common/base/status.h"

namespace kmosaic {
namespace {

class SharingRole : public Role {
 public:
  SharingRole(std::unique_ptr<Role> role, DeviceUse* use) : role_(std::move(role)), use_(use) {}

  absl::StatusOr<Frame> Call(const nlohmann::json& request, const std::vector<int>& fds,
                             absl::Duration deadline) override {
    KMOSAIC_ASSIGN_OR_RETURN(DeviceLock held, use_->Share());
    return role_->Call(request, fds, deadline);
  }
  const std::optional<RoleFailure>& failure() const override { return role_->failure(); }
  void Kill() override { role_->Kill(); }
  std::string Output() override { return role_->Output(); }

 private:
  std::unique_ptr<Role> role_;
  DeviceUse* const use_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Role>> SharingRoles::Start(
    RoleKind kind, const RoleLimits& limits, const std::vector<std::string>& readable) {
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<Role> role, roles_->Start(kind, limits, readable));
  // Sources are collected without a device.
  if (kind == RoleKind::kCollect) return role;
  return std::make_unique<SharingRole>(std::move(role), use_);
}

absl::StatusOr<OutputSummary> SharingExaminer::Summarize(const Parcel& expected) {
  KMOSAIC_ASSIGN_OR_RETURN(DeviceLock held, use_->Share());
  return examiner_->Summarize(expected);
}

absl::StatusOr<Comparison> SharingExaminer::Compare(const Parcel& expected,
                                                    const Parcel* expected64, const Parcel& got,
                                                    const CompareOptions& options) {
  KMOSAIC_ASSIGN_OR_RETURN(DeviceLock held, use_->Share());
  return examiner_->Compare(expected, expected64, got, options);
}

absl::StatusOr<std::optional<Difference>> SharingExaminer::FirstDifference(const Parcel& before,
                                                                           const Parcel& after) {
  KMOSAIC_ASSIGN_OR_RETURN(DeviceLock held, use_->Share());
  return examiner_->FirstDifference(before, after);
}

absl::StatusOr<Parcel> SharingExaminer::ToHost(const Parcel& parcel) {
  KMOSAIC_ASSIGN_OR_RETURN(DeviceLock held, use_->Share());
  return examiner_->ToHost(parcel);
}

}  // namespace kmosaic
