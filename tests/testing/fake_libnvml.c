// Stands in for libnvidia-ml.so.1 beside fake_libcuda.c. Signatures: nvml.h.
#include <string.h>

typedef void* nvmlDevice_t;

static int gpu;

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") != 0) return 6;
  *device = &gpu;
  return 0;
}

int nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor) {
  if (device != &gpu) return 2;
  *minor = 5;
  return 0;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t slice, nvmlDevice_t* device) {
  (void)slice;
  (void)device;
  return 2;
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  strncpy(version, "580.0", length);
  return 0;
}
