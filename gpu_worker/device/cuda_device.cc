#include "gpu_worker/device/cuda_device.h"

#include <cmath>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "gpu_worker/device/light_toolkit.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;
namespace v1 = kernelmosaic::v1;

// "13" of "13.0.88".
int MajorOf(const std::string& version) {
  int major = 0;
  return absl::SimpleAtoi(version.substr(0, version.find('.')), &major) ? major : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(const Options& options,
                                                           const DriverTable& driver) {
  KMOSAIC_ASSIGN_OR_RETURN(GpuDescription gpu, DescribeGpu(driver, options.gpu));
  const Toolchain& toolchain = options.toolchain;
  if (toolchain.nvcc.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no working nvcc in ", toolchain.cuda_home,
                     "/bin: install the CUDA toolkit, or name one with --cuda-home"));
  }
  if (int major = MajorOf(toolchain.nvcc_version); major > gpu.cuda_major) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the driver ", gpu.driver, " runs CUDA up to ", gpu.cuda_major, ".", gpu.cuda_minor,
        ", the toolkit is ", toolchain.nvcc_version,
        ": update the driver, or name a toolkit of that major version with --cuda-home"));
  }
  LightToolkit toolkit = LightToolkitOf(toolchain, options.torch_headers);
  KMOSAIC_RETURN_IF_ERROR(CheckLightToolkit(toolkit));
  std::string digest =
      Sha256Hex(absl::StrCat(DigestHeaders({options.torch_headers}, /*by_content=*/true),
                             DigestHeaders({toolchain.cuda_include}, /*by_content=*/false)));
  return std::unique_ptr<Device>(
      new CudaDevice(options, std::move(gpu), std::move(toolkit), std::move(digest)));
}

v1::DeviceKind CudaDevice::kind() const { return v1::DEVICE_KIND_CUDA; }

v1::DeviceInfo CudaDevice::info() const {
  v1::DeviceInfo info;
  info.set_kind(v1::DEVICE_KIND_CUDA);
  info.set_name(gpu_.name);
  info.set_uuid(gpu_.uuid);
  info.set_arch(gpu_.Arch());
  info.set_driver(gpu_.driver);
  info.set_toolchain(options_.toolchain.CudaName());
  return info;
}

std::map<std::string, std::string> CudaDevice::labels() const {
  // Whole GiB, as product names count them.
  int64_t gib = std::llround(static_cast<double>(gpu_.memory_bytes) / (1024.0 * 1024 * 1024));
  std::string name = gpu_.name;
  if (name.rfind("NVIDIA ", 0) == 0) name = name.substr(7);
  return {{"device", "cuda"},
          {"gpu", name},
          {"sm", absl::StrCat(gpu_.major, gpu_.minor)},
          {"cuda",
           options_.toolchain.nvcc_version.substr(0, options_.toolchain.nvcc_version.rfind('.'))},
          {"mig", gpu_.is_mig ? "true" : "false"},
          {"vram_gb", absl::StrCat(gib)}};
}

absl::StatusOr<BuildPlan> CudaDevice::Plan(const ExtensionSource& source, Purpose purpose) const {
  if (purpose != Purpose::kRun) return absl::UnimplementedError("a GPU builds to run only");
  return PlanLight(source, toolkit_, gpu_.Arch());
}

absl::StatusOr<BuildPlan> CudaDevice::PlanEntry(const std::string& source, Purpose purpose) const {
  if (purpose != Purpose::kRun) return absl::UnimplementedError("a GPU builds to run only");
  return PlanLightCuda(source, toolkit_, gpu_.Arch());
}

bool CudaDevice::LacksTorchApi(const std::string& log) const {
  return kmosaic::LacksTorchApi(log, options_.torch_include);
}

SandboxAccess CudaDevice::access() const {
  SandboxAccess access;
  access.nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                  absl::StrCat("/dev/nvidia", gpu_.device_node)};
  std::error_code error;
  if (fs::exists("/dev/nvidia-uvm-tools", error)) access.nodes.push_back("/dev/nvidia-uvm-tools");
  if (gpu_.is_mig) {
    for (const auto& entry : fs::directory_iterator("/dev/nvidia-caps", error)) {
      access.nodes.push_back(entry.path().string());
    }
  }
  // One GPU and no cache on disk that outlives a candidate.
  access.environment = {"CUDA_VISIBLE_DEVICES=" + gpu_.uuid, "CUDA_CACHE_DISABLE=1"};
  access.readable = {toolkit_.library};
  if (std::string folder = DriverFolder(); !folder.empty()) {
    access.environment.push_back("LD_LIBRARY_PATH=" + folder);
    access.readable.push_back(folder);
  }
  return access;
}

absl::StatusOr<DeviceLock> CudaDevice::Lock(DeviceLock::Mode mode,
                                            const std::function<bool()>& cancelled) const {
  absl::Time start = absl::Now();
  auto held = DeviceLock::Acquire(
      absl::StrCat(options_.lock_folder, "/kmosaic-", gpu_.uuid, ".lock"), mode, cancelled);
  options_.on_lock(mode, absl::Now() - start);
  return held;
}

}  // namespace kmosaic
