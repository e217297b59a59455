// A real GPU, seen through the driver table.
#ifndef KMOSAIC_GPU_WORKER_DEVICE_CUDA_DEVICE_H_
#define KMOSAIC_GPU_WORKER_DEVICE_CUDA_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/compile/toolchain.h"
#include "gpu_worker/device/cuda_driver.h"
#include "gpu_worker/device/device.h"
#include "gpu_worker/torch_abi/plan.h"

namespace kmosaic {

class CudaDevice : public Device {
 public:
  struct Options {
    int gpu = 0;  // among the visible ones; DescribeGpu
    Toolchain toolchain;
    // torch_abi/include.
    std::string torch_headers;
    // Headers of the installed torch; empty where there are none.
    std::string torch_include;
    // Folder of the lock files that all workers of this host share.
    std::string lock_folder;
    // Told how long each Lock() waited; from any thread.
    std::function<void(DeviceLock::Mode mode, absl::Duration waited)> on_lock =
        [](DeviceLock::Mode, absl::Duration) {};
  };

  // FAILED_PRECONDITION in clear words: no GPU, no nvcc, a driver older than the toolkit.
  static absl::StatusOr<std::unique_ptr<Device>> Create(const Options& options,
                                                        const DriverTable& driver);

  kernelmosaic::v1::DeviceKind kind() const override;
  kernelmosaic::v1::DeviceInfo info() const override;
  std::string abi() const override { return "light"; }
  std::map<std::string, std::string> labels() const override;
  absl::StatusOr<BuildPlan> Plan(const ExtensionSource& source, Purpose purpose) const override;
  absl::StatusOr<BuildPlan> PlanEntry(const std::string& source, Purpose purpose) const override;
  bool LacksTorchApi(const std::string& log) const override;
  std::string header_digest() const override { return header_digest_; }
  SandboxAccess access() const override;
  double default_scale() const override { return 1; }
  absl::StatusOr<DeviceLock> Lock(DeviceLock::Mode mode,
                                  const std::function<bool()>& cancelled) const override;

 private:
  CudaDevice(Options options, GpuDescription gpu, LightToolkit toolkit, std::string header_digest)
      : options_(std::move(options)),
        gpu_(std::move(gpu)),
        toolkit_(std::move(toolkit)),
        header_digest_(std::move(header_digest)) {}

  const Options options_;
  const GpuDescription gpu_;
  const LightToolkit toolkit_;
  const std::string header_digest_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_DEVICE_CUDA_DEVICE_H_
