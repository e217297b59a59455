// The CUDA runtime's C entry points over the emulation runtime. Compiled on the worker against
// the toolkit's headers (whose structures differ from version to version) and linked into every
// emulated extension with hidden symbols, so that the real libcudart of a CUDA build of torch is
// never meant.
#include <cuda_runtime_api.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kmosaic_emulation/runtime_api.h"

namespace {

cudaError_t Fail(cudaError_t error) {
  kmosaic_emu_set_error(error);
  return error;
}

// Is [address, address + bytes) safe to touch from the host? Memory that is not the device's is
// the caller's business.
bool Fits(const void* address, size_t bytes) {
  void* start = nullptr;
  size_t size = 0;
  if (kmosaic_emu_find(address, &start, &size) == 0) return true;
  const size_t offset =
      static_cast<size_t>(static_cast<const char*>(address) - static_cast<const char*>(start));
  return bytes <= size - offset;
}

cudaError_t Copy(void* target, const void* source, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (target == nullptr || source == nullptr || !Fits(target, bytes) || !Fits(source, bytes)) {
    return Fail(cudaErrorInvalidValue);
  }
  std::memmove(target, source, bytes);
  return cudaSuccess;
}

cudaError_t Set(void* target, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (target == nullptr || !Fits(target, bytes)) return Fail(cudaErrorInvalidValue);
  std::memset(target, value, bytes);
  return cudaSuccess;
}

cudaError_t CopyRows(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                     size_t width, size_t height) {
  if (width > target_pitch || width > source_pitch) return Fail(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = Copy(static_cast<char*>(target) + row * target_pitch,
                                   static_cast<const char*>(source) + row * source_pitch, width);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// Streams and events have no work to wait for; a handle is a small block that tells them apart.
struct Event {
  timespec recorded;
};

cudaError_t MakeStream(cudaStream_t* stream) {
  *stream = static_cast<cudaStream_t>(std::malloc(1));
  return *stream == nullptr ? Fail(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t MakeEvent(cudaEvent_t* event) {
  *event = static_cast<cudaEvent_t>(std::calloc(1, sizeof(Event)));
  return *event == nullptr ? Fail(cudaErrorMemoryAllocation) : cudaSuccess;
}

struct ErrorWords {
  cudaError_t error;
  const char* name;
  const char* text;
};
#define KMOSAIC_ERROR(error, text) \
  { error, #error, text }
constexpr ErrorWords kErrors[] = {
    KMOSAIC_ERROR(cudaSuccess, "no error"),
    KMOSAIC_ERROR(cudaErrorInvalidValue, "invalid argument"),
    KMOSAIC_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    KMOSAIC_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    KMOSAIC_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    KMOSAIC_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    KMOSAIC_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    KMOSAIC_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    KMOSAIC_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    KMOSAIC_ERROR(cudaErrorAssert, "device-side assert triggered"),
    KMOSAIC_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    KMOSAIC_ERROR(cudaErrorNotSupported, "operation not supported"),
};
#undef KMOSAIC_ERROR
constexpr ErrorWords kUnknownError = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};

const ErrorWords& WordsOf(cudaError_t error) {
  for (const ErrorWords& words : kErrors) {
    if (words.error == error) return words;
  }
  return kUnknownError;
}

struct Attribute {
  cudaDeviceAttr name;
  int value;
};
// Compute capability 9.0.
constexpr Attribute kAttributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 232448},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrMultiProcessorCount, 132},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrL2CacheSize, 52428800},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
};

}  // namespace

extern "C" {

// ---- errors
cudaError_t cudaGetLastError(void) { return static_cast<cudaError_t>(kmosaic_emu_last_error(1)); }
cudaError_t cudaPeekAtLastError(void) {
  return static_cast<cudaError_t>(kmosaic_emu_last_error(0));
}
const char* cudaGetErrorName(cudaError_t error) { return WordsOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return WordsOf(error).text; }

// ---- devices
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : Fail(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceSynchronize(void) {
  return static_cast<cudaError_t>(kmosaic_emu_last_error(0));
}
cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return Fail(cudaErrorInvalidDevice);
  for (const Attribute& known : kAttributes) {
    if (known.name != attribute) continue;
    *value = known.value;
    return cudaSuccess;
  }
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return Fail(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof(*properties));
  std::strcpy(properties->name, "KernelMosaic emulated device");
  properties->totalGlobalMem = size_t{16} << 30;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = 232448;
  properties->sharedMemPerMultiprocessor = 233472;
  properties->regsPerBlock = 65536;
  properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->totalConstMem = 65536;
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = 132;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->l2CacheSize = 52428800;
  properties->concurrentKernels = 1;
  properties->unifiedAddressing = 1;
  properties->managedMemory = 1;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *total = size_t{16} << 30;
  const size_t used = kmosaic_emu_allocated_bytes();
  *available = used < *total ? *total - used : 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  std::memset(attributes, 0, sizeof(*attributes));
  if (kmosaic_emu_find(address, nullptr, nullptr) != 0) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(address);
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}

// ---- memory
cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (address == nullptr) return Fail(cudaErrorInvalidValue);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  *address = kmosaic_emu_allocate(bytes);
  return *address == nullptr ? Fail(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (address == nullptr || kmosaic_emu_free(address) != 0) return cudaSuccess;
  return Fail(cudaErrorInvalidValue);
}
cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t) {
  return cudaMalloc(address, bytes);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }
cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned) {
  return cudaMalloc(address, bytes);
}
cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(address, *pitch * height);
}
cudaError_t cudaMallocHost(void** address, size_t bytes) {
  *address = std::malloc(bytes == 0 ? 1 : bytes);
  return *address == nullptr ? Fail(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  return cudaMallocHost(address, bytes);
}
cudaError_t cudaFreeHost(void* address) {
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind) {
  return Copy(target, source, bytes);
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  return Copy(target, source, bytes);
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind) {
  return CopyRows(target, target_pitch, source, source_pitch, width, height);
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind,
                              cudaStream_t) {
  return CopyRows(target, target_pitch, source, source_pitch, width, height);
}
cudaError_t cudaMemcpyPeer(void* target, int, const void* source, int, size_t bytes) {
  return Copy(target, source, bytes);
}
cudaError_t cudaMemset(void* target, int value, size_t bytes) { return Set(target, value, bytes); }
cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t) {
  return Set(target, value, bytes);
}
cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error = Set(static_cast<char*>(target) + row * pitch, value, width);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// ---- streams and events
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return MakeStream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return MakeStream(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return MakeStream(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return MakeEvent(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return MakeEvent(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (event == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  clock_gettime(CLOCK_MONOTONIC, &reinterpret_cast<Event*>(event)->recorded);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  const timespec& a = reinterpret_cast<Event*>(start)->recorded;
  const timespec& b = reinterpret_cast<Event*>(end)->recorded;
  *milliseconds = static_cast<float>(static_cast<double>(b.tv_sec - a.tv_sec) * 1e3 +
                                     static_cast<double>(b.tv_nsec - a.tv_nsec) * 1e-6);
  return cudaSuccess;
}

// ---- functions
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  kmosaic_emu_unsupported("cudaLaunchKernel with a function pointer of no type");
  return cudaErrorNotSupported;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  std::memset(attributes, 0, sizeof(*attributes));
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->maxDynamicSharedSizeBytes = 49152;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block,
                                                          size_t) {
  if (block <= 0) return Fail(cudaErrorInvalidValue);
  *blocks = block > 2048 ? 0 : 2048 / block;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function, int block,
                                                                   size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block, shared);
}

// ---- the C library's: a failed assert() in a kernel ends the launch, not the process
[[noreturn]] void __assert_fail(const char* expression, const char* file, unsigned line,
                                const char* function) noexcept {
  kmosaic_emu_assert_failed(expression, file, line);
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
  std::abort();
}

}  // extern "C"
