// The CPU behind an emulation of CUDA's execution model.
#ifndef KMOSAIC_GPU_WORKER_DEVICE_EMULATED_DEVICE_H_
#define KMOSAIC_GPU_WORKER_DEVICE_EMULATED_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gpu_worker/compile/command_runner.h"
#include "gpu_worker/compile/toolchain.h"
#include "gpu_worker/device/device.h"
#include "gpu_worker/emulation/plan.h"

namespace kmosaic {

class EmulatedDevice : public Device {
 public:
  struct Options {
    Toolchain toolchain;
    // All but `support`, which is built here when the cache lacks it.
    EmulationPaths paths;
    // Directory for the support build; it is kept between runs.
    std::string support_cache;
    CommandRunner* runner = nullptr;  // used by Create only
    // Headers of the installed torch; empty where there are none.
    std::string torch_include;
  };

  // Takes some seconds when the support has to be built. FAILED_PRECONDITION and other
  // statuses name what is missing and what to do.
  static absl::StatusOr<std::unique_ptr<Device>> Create(const Options& options);

  kernelmosaic::v1::DeviceKind kind() const override;
  kernelmosaic::v1::DeviceInfo info() const override;
  std::string abi() const override { return "emulated"; }
  std::map<std::string, std::string> labels() const override;
  absl::StatusOr<BuildPlan> Plan(const ExtensionSource& source, Purpose purpose) const override;
  absl::StatusOr<BuildPlan> PlanEntry(const std::string& source, Purpose purpose) const override;
  bool LacksTorchApi(const std::string& log) const override;
  std::string header_digest() const override { return header_digest_; }
  SandboxAccess access() const override;
  double default_scale() const override { return 0.05; }
  // Many may run at once: there is nothing to lock.
  absl::StatusOr<DeviceLock> Lock(DeviceLock::Mode mode,
                                  const std::function<bool()>& cancelled) const override;

 private:
  EmulatedDevice(Options options, EmulationPaths paths, std::string header_digest)
      : options_(std::move(options)),
        paths_(std::move(paths)),
        header_digest_(std::move(header_digest)) {}

  const Options options_;
  const EmulationPaths paths_;
  const std::string header_digest_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_DEVICE_EMULATED_DEVICE_H_
