// A driver table for machines without a GPU.
#ifndef KMOSAIC_TESTS_UNIT_DEVICE_FAKE_DRIVER_H_
#define KMOSAIC_TESTS_UNIT_DEVICE_FAKE_DRIVER_H_

#include <cstring>
#include <string>

#include "gpu_worker/device/cuda_driver.h"

namespace kmosaic::testing {

struct FakeGpu {
  std::string name = "NVIDIA H200";
  int count = 1;
  int init = 0;
  int version = 13000;
  int major = 9;
  int minor = 0;
  size_t memory = size_t{150'754'820'096};
  unsigned node = 3;
  bool mig = false;
  // First byte of the UUID; the others count up.
  unsigned char uuid = 0xab;
};

// UUID of FakeGpu as text, without a prefix.
inline constexpr char kFakeUuid[] = "ab010203-0405-0607-0809-0a0b0c0d0e0f";

inline DriverTable FakeDriver(const FakeGpu& gpu) {
  DriverTable table;
  table.cuInit = [gpu](unsigned) { return gpu.init; };
  table.cuDriverGetVersion = [gpu](int* version) {
    *version = gpu.version;
    return 0;
  };
  table.cuDeviceGetCount = [gpu](int* count) {
    *count = gpu.count;
    return 0;
  };
  table.cuDeviceGet = [](int* device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  table.cuDeviceGetName = [gpu](char* name, int length, int) {
    std::strncpy(name, gpu.name.c_str(), static_cast<size_t>(length));
    return 0;
  };
  table.cuDeviceGetUuid = [gpu](void* uuid, int device) {
    auto* bytes = static_cast<unsigned char*>(uuid);
    // The UUIDs of further GPUs follow the first one's.
    for (unsigned char i = 0; i < 16; ++i)
      bytes[i] = i == 0 ? static_cast<unsigned char>(gpu.uuid + device) : i;
    return 0;
  };
  table.cuDeviceGetAttribute = [gpu](int* value, int attribute, int) {
    *value = attribute == 75 ? gpu.major : attribute == 76 ? gpu.minor : 132;
    return 0;
  };
  table.cuDeviceTotalMem = [gpu](size_t* bytes, int) {
    *bytes = gpu.memory;
    return 0;
  };
  table.nvmlInit = [] { return 0; };
  table.nvmlDeviceGetHandleByUUID = [gpu](const char* uuid, void** device) {
    // All but the first byte, in which the GPUs differ.
    std::string wanted = std::string(gpu.mig ? "MIG-" : "GPU-");
    std::string text = uuid;
    *device = nullptr;
    return text.rfind(wanted, 0) == 0 && text.substr(6) == std::string(kFakeUuid).substr(2) ? 0 : 6;
  };
  table.nvmlDeviceGetMinorNumber = [gpu](void*, unsigned* minor) {
    *minor = gpu.node;
    return 0;
  };
  table.nvmlDeviceGetDeviceHandleFromMigDeviceHandle = [](void* mig, void** parent) {
    *parent = mig;
    return 0;
  };
  table.nvmlSystemGetDriverVersion = [](char* version, unsigned length) {
    std::strncpy(version, "580.159.03", length);
    return 0;
  };
  return table;
}

}  // namespace kmosaic::testing

#endif  // KMOSAIC_TESTS_UNIT_DEVICE_FAKE_DRIVER_H_
