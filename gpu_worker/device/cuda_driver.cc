#include "gpu_worker/device/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kmosaic {
namespace {

// CUdevice_attribute, cuda.h.
constexpr int kMultiprocessorCount = 16;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

absl::StatusOr<void*> Open(const char* library, const char* advice) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::NotFoundError(absl::StrCat(dlerror(), ": ", advice));
  }
  return handle;
}

template <typename Function>
bool Bind(void* library, const char* name, std::function<Function>* target) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) return false;
  *target = reinterpret_cast<Function*>(symbol);
  return true;
}

// CUresult, cuda.h.
std::string ResultWords(int result) {
  switch (result) {
    case 3:
      return "the driver is not initialised";
    case 34:
      return "the driver is a stub library: libcuda.so of the toolkit was found instead of the "
             "driver's; remove the toolkit's lib64/stubs from LD_LIBRARY_PATH";
    case 46:
      return "the GPU is busy or in exclusive mode";
    case 100:
      return "no GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES";
    case 304:
      return "a system call of the driver failed; in a container, check that /dev/nvidia* and "
             "/sys are there";
    case 802:
      return "the GPU fabric is not ready; check nvidia-fabricmanager";
    case 803:
      return "the driver's kernel module and its library have different versions; restart the "
             "machine or reload the module";
    case 804:
      return "the CUDA compatibility library does not fit this GPU";
    case 999:
      return "the driver failed for an unknown reason; check the kernel log for Xid messages";
    default:
      return absl::StrCat("CUDA driver error ", result);
  }
}

absl::Status Failed(const char* call, int result) {
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", ResultWords(result)));
}

std::string FormatUuid(const std::array<unsigned char, 16>& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", bytes[i]);
  }
  return text;
}

}  // namespace

absl::StatusOr<DriverTable> LoadDriver() {
  auto cuda = Open("libcuda.so.1", "install the NVIDIA driver, or use --device emulated");
  if (!cuda.ok()) return cuda.status();
  auto nvml = Open("libnvidia-ml.so.1", "install the NVIDIA driver's management library");
  if (!nvml.ok()) return nvml.status();
  DriverTable table;
  bool complete = Bind(*cuda, "cuInit", &table.cuInit) &&
                  Bind(*cuda, "cuDriverGetVersion", &table.cuDriverGetVersion) &&
                  Bind(*cuda, "cuDeviceGetCount", &table.cuDeviceGetCount) &&
                  Bind(*cuda, "cuDeviceGet", &table.cuDeviceGet) &&
                  Bind(*cuda, "cuDeviceGetName", &table.cuDeviceGetName) &&
                  Bind(*cuda, "cuDeviceGetUuid_v2", &table.cuDeviceGetUuid) &&
                  Bind(*cuda, "cuDeviceGetAttribute", &table.cuDeviceGetAttribute) &&
                  Bind(*cuda, "cuDeviceTotalMem_v2", &table.cuDeviceTotalMem) &&
                  Bind(*nvml, "nvmlInit_v2", &table.nvmlInit) &&
                  Bind(*nvml, "nvmlDeviceGetHandleByUUID", &table.nvmlDeviceGetHandleByUUID) &&
                  Bind(*nvml, "nvmlDeviceGetMinorNumber", &table.nvmlDeviceGetMinorNumber) &&
                  Bind(*nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
                       &table.nvmlDeviceGetDeviceHandleFromMigDeviceHandle) &&
                  Bind(*nvml, "nvmlSystemGetDriverVersion", &table.nvmlSystemGetDriverVersion);
  if (!complete) {
    return absl::FailedPreconditionError(
        "the NVIDIA driver is too old: it lacks functions of CUDA 11.4 and later; update it");
  }
  return table;
}

std::string DriverFolder() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return "";
  Dl_info info = {};
  void* symbol = dlsym(library, "cuInit");
  bool found = symbol != nullptr && dladdr(symbol, &info) != 0 && info.dli_fname != nullptr;
  dlclose(library);
  return found ? std::filesystem::path(info.dli_fname).parent_path().string() : "";
}

std::string GpuDescription::Arch() const {
  return absl::StrCat("sm_", major, minor, major >= 9 ? "a" : "");
}

absl::StatusOr<GpuDescription> DescribeGpu(const DriverTable& driver, int index) {
  if (int result = driver.cuInit(0); result != 0) return Failed("cuInit", result);
  GpuDescription gpu;
  int version = 0;
  if (int result = driver.cuDriverGetVersion(&version); result != 0) {
    return Failed("cuDriverGetVersion", result);
  }
  gpu.cuda_major = version / 1000;
  gpu.cuda_minor = version % 1000 / 10;
  int count = 0;
  if (int result = driver.cuDeviceGetCount(&count); result != 0) {
    return Failed("cuDeviceGetCount", result);
  }
  if (count == 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return absl::FailedPreconditionError(absl::StrCat(
        "no GPU is visible",
        visible == nullptr ? std::string()
                           : absl::StrCat(" with CUDA_VISIBLE_DEVICES='", visible,
                                          "': unset it or name a GPU as nvidia-smi -L shows it")));
  }
  int device = 0;
  if (int result = driver.cuDeviceGet(&device, index % count); result != 0)
    return Failed("cuDeviceGet", result);
  char name[256] = {};
  std::array<unsigned char, 16> uuid = {};
  size_t memory = 0;
  struct {
    const char* call;
    int result;
  } queries[] = {
      {"cuDeviceGetName", driver.cuDeviceGetName(name, sizeof name - 1, device)},
      {"cuDeviceGetUuid", driver.cuDeviceGetUuid(uuid.data(), device)},
      {"cuDeviceTotalMem", driver.cuDeviceTotalMem(&memory, device)},
      {"cuDeviceGetAttribute",
       driver.cuDeviceGetAttribute(&gpu.major, kComputeCapabilityMajor, device)},
      {"cuDeviceGetAttribute",
       driver.cuDeviceGetAttribute(&gpu.minor, kComputeCapabilityMinor, device)},
      {"cuDeviceGetAttribute",
       driver.cuDeviceGetAttribute(&gpu.multiprocessors, kMultiprocessorCount, device)},
  };
  for (const auto& query : queries) {
    if (query.result != 0) return Failed(query.call, query.result);
  }
  gpu.name = name;
  gpu.memory_bytes = memory;

  // NVML numbers GPUs in its own order, so it is asked by UUID.
  if (int result = driver.nvmlInit(); result != 0) {
    return absl::FailedPreconditionError(absl::StrCat("nvmlInit failed with NVML error ", result));
  }
  void* handle = nullptr;
  gpu.uuid = "GPU-" + FormatUuid(uuid);
  if (driver.nvmlDeviceGetHandleByUUID(gpu.uuid.c_str(), &handle) != 0) {
    gpu.uuid = "MIG-" + FormatUuid(uuid);
    gpu.is_mig = true;
    void* slice = nullptr;
    if (driver.nvmlDeviceGetHandleByUUID(gpu.uuid.c_str(), &slice) != 0 ||
        driver.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slice, &handle) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("NVML does not know the GPU ", gpu.uuid, " that CUDA shows"));
    }
  }
  unsigned node = 0;
  if (int result = driver.nvmlDeviceGetMinorNumber(handle, &node); result != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("NVML does not tell the device node of ", gpu.uuid, " (error ", result, ")"));
  }
  gpu.device_node = static_cast<int>(node);
  char text[96] = {};
  if (driver.nvmlSystemGetDriverVersion(text, sizeof text - 1) == 0) gpu.driver = text;
  return gpu;
}

}  // namespace kmosaic
