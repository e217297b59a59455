// How an evaluation shares the device with others.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_DEVICE_USE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_DEVICE_USE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/device/device.h"
#include "gpu_worker/evaluate/examiner.h"
#include "gpu_worker/evaluate/role.h"

namespace kmosaic {

// Each thing that runs on the device holds it shared, for as long as it runs, so that who wants
// it alone waits for a call of others and not for their whole evaluation. Of one evaluation, for
// one thread.
class DeviceUse {
 public:
  DeviceUse(const Device* device, std::function<bool()> cancelled)
      : device_(device), cancelled_(std::move(cancelled)) {}

  // Held while something runs. Holds nothing inside Alone, where there is nobody to share with.
  // CANCELLED, or what the lock's file is in the way.
  absl::StatusOr<DeviceLock> Share() {
    if (alone_) return DeviceLock();
    return device_->Lock(DeviceLock::Mode::kShared, cancelled_);
  }

  // Runs `what` while nothing else runs on the device. Does not nest.
  absl::Status Alone(const std::function<void()>& what) {
    auto held = device_->Lock(DeviceLock::Mode::kExclusive, cancelled_);
    if (!held.ok()) return held.status();
    alone_ = true;
    what();
    alone_ = false;
    return absl::OkStatus();
  }

 private:
  const Device* const device_;
  const std::function<bool()> cancelled_;
  bool alone_ = false;
};

// Processes whose calls hold the device. `roles` and `use` outlive it and what it starts.
class SharingRoles : public RoleStarter {
 public:
  SharingRoles(RoleStarter* roles, DeviceUse* use) : roles_(roles), use_(use) {}
  absl::StatusOr<std::unique_ptr<Role>> Start(RoleKind kind, const RoleLimits& limits,
                                              const std::vector<std::string>& readable) override;

 private:
  RoleStarter* const roles_;
  DeviceUse* const use_;
};

// The same of what looks at values there.
class SharingExaminer : public Examiner {
 public:
  SharingExaminer(Examiner* examiner, DeviceUse* use) : examiner_(examiner), use_(use) {}

  BlockMemory memory() const override { return examiner_->memory(); }
  absl::StatusOr<OutputSummary> Summarize(const Parcel& expected) override;
  absl::StatusOr<Comparison> Compare(const Parcel& expected, const Parcel* expected64,
                                     const Parcel& got, const CompareOptions& options) override;
  absl::StatusOr<std::optional<Difference>> FirstDifference(const Parcel& before,
                                                            const Parcel& after) override;
  absl::StatusOr<Parcel> ToHost(const Parcel& parcel) override;

 private:
  Examiner* const examiner_;
  DeviceUse* const use_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_DEVICE_USE_H_
