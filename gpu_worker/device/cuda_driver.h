// The CUDA driver and NVML, loaded when the process runs: this program links to neither
// and starts on machines without them.
#ifndef KMOSAIC_GPU_WORKER_DEVICE_CUDA_DRIVER_H_
#define KMOSAIC_GPU_WORKER_DEVICE_CUDA_DRIVER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace kmosaic {

// The few functions that are needed, each with the C signature of its library except
// that handles are pointers to nothing. A test gives its own. Each returns 0 for
// success.
struct DriverTable {
  // libcuda.so.1
  std::function<int(unsigned flags)> cuInit;
  std::function<int(int* version)> cuDriverGetVersion;
  std::function<int(int* count)> cuDeviceGetCount;
  std::function<int(int* device, int ordinal)> cuDeviceGet;
  std::function<int(char* name, int length, int device)> cuDeviceGetName;
  std::function<int(void* uuid16, int device)> cuDeviceGetUuid;
  std::function<int(int* value, int attribute, int device)> cuDeviceGetAttribute;
  std::function<int(size_t* bytes, int device)> cuDeviceTotalMem;
  // libnvidia-ml.so.1
  std::function<int()> nvmlInit;
  std::function<int(const char* uuid, void** device)> nvmlDeviceGetHandleByUUID;
  std::function<int(void* device, unsigned* minor)> nvmlDeviceGetMinorNumber;
  std::function<int(void* mig, void** parent)> nvmlDeviceGetDeviceHandleFromMigDeviceHandle;
  std::function<int(char* version, unsigned length)> nvmlSystemGetDriverVersion;
};

// NOT_FOUND when there is no driver, with the loader's words. The libraries stay loaded.
absl::StatusOr<DriverTable> LoadDriver();

// Folder that libcuda.so.1 was loaded from; empty when it is not loaded. Some machines find it
// through LD_LIBRARY_PATH alone.
std::string DriverFolder();

struct GpuDescription {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-..." or "MIG-..."
  int major = 0;     // compute capability
  int minor = 0;
  uint64_t memory_bytes = 0;  // of the slice, for MIG
  int multiprocessors = 0;
  int device_node = 0;  // N of /dev/nvidiaN
  bool is_mig = false;
  std::string driver;  // "580.159.03"
  int cuda_major = 0;  // newest CUDA that the driver runs
  int cuda_minor = 0;

  // "sm_90a": with the suffix where the architecture has features of its own (9.0 on).
  std::string Arch() const;
};

// GPU `index`, from 0, of those that CUDA_VISIBLE_DEVICES leaves visible (the driver reads it:
// UUIDs, prefixes, MIG, any order); beyond the last one it begins again with the first, so that
// workers that are numbered spread over what there is. FAILED_PRECONDITION in clear words when
// there is none or the driver does not come up.
absl::StatusOr<GpuDescription> DescribeGpu(const DriverTable& driver, int index);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_DEVICE_CUDA_DRIVER_H_
