// Stands in for libcuda.so.1 where a test loads the driver: one GPU. Signatures: cuda.h.
#include <stddef.h>
#include <string.h>

typedef int CUdevice;
typedef struct {
  char bytes[16];
} CUuuid;

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDeviceGetName(char* name, int length, CUdevice device) {
  (void)device;
  strncpy(name, "NVIDIA Stand-in", (size_t)length);
  return 0;
}

int cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  (void)device;
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = (char)i;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  (void)device;
  *value = attribute == 75 ? 8 : attribute == 76 ? 6 : 82;
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)24 << 30;
  return 0;
}
