// A device that only its lock is real of.
#ifndef KMOSAIC_TESTS_UNIT_EVALUATE_FAKE_GPU_H_
#define KMOSAIC_TESTS_UNIT_EVALUATE_FAKE_GPU_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu_worker/device/device.h"

namespace kmosaic::testing {

namespace v1 = kernelmosaic::v1;

class FakeGpu : public Device {
 public:
  explicit FakeGpu(std::string lock) : lock_(std::move(lock)) {}
  v1::DeviceKind kind() const override { return v1::DEVICE_KIND_CUDA; }
  v1::DeviceInfo info() const override {
    v1::DeviceInfo info;
    info.set_kind(kind());
    info.set_name("NVIDIA H200");
    info.set_uuid("GPU-1");
    return info;
  }
  std::string abi() const override { return "light"; }
  std::map<std::string, std::string> labels() const override { return {}; }
  absl::StatusOr<BuildPlan> Plan(const ExtensionSource&, Purpose) const override {
    BuildPlan plan;
    plan.files = {{"kernel.cu", "code"}};
    plan.commands = {{"nvcc"}};
    plan.output = "out.so";
    return plan;
  }
  absl::StatusOr<BuildPlan> PlanEntry(const std::string&, Purpose purpose) const override {
    return Plan({}, purpose);
  }
  bool LacksTorchApi(const std::string&) const override { return false; }
  std::string header_digest() const override { return "headers"; }
  SandboxAccess access() const override { return {}; }
  double default_scale() const override { return 1; }
  absl::StatusOr<DeviceLock> Lock(DeviceLock::Mode mode,
                                  const std::function<bool()>& cancelled) const override {
    modes.push_back(mode);
    return DeviceLock::Acquire(lock_, mode, cancelled);
  }

  // In the order in which they were asked for.
  mutable std::vector<DeviceLock::Mode> modes;

 private:
  const std::string lock_;
};

}  // namespace kmosaic::testing

#endif  // KMOSAIC_TESTS_UNIT_EVALUATE_FAKE_GPU_H_
