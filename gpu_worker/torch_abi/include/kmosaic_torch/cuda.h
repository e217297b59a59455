// Streams, guards and checks of at::cuda and c10::cuda.
#ifndef KMOSAIC_TORCH_CUDA_H_
#define KMOSAIC_TORCH_CUDA_H_

#include <cuda_runtime.h>

#include "kmosaic_torch/functions.h"

namespace c10::cuda {

class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, DeviceIndex device) : stream_(stream), device_(device) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  Device device() const { return {DeviceType::CUDA, device_}; }
  void synchronize() const { (void)cudaStreamSynchronize(stream_); }
  bool query() const { return cudaStreamQuery(stream_) == cudaSuccess; }
  friend bool operator==(const CUDAStream& a, const CUDAStream& b) {
    return a.stream_ == b.stream_;
  }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};

inline DeviceIndex current_device() {
  int device = 0;
  (void)cudaGetDevice(&device);
  return static_cast<DeviceIndex>(device);
}
inline DeviceIndex device_count() {
  int count = 0;
  (void)cudaGetDeviceCount(&count);
  return static_cast<DeviceIndex>(count);
}
inline void set_device(DeviceIndex device) { (void)cudaSetDevice(device); }
inline void device_synchronize() { (void)cudaDeviceSynchronize(); }
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  if (device == -1) device = current_device();
  void* stream = kmosaic_torch::host == nullptr ? nullptr : kmosaic_torch::host->stream(device);
  return {static_cast<cudaStream_t>(stream), device};
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  return {nullptr, device == -1 ? current_device() : device};
}

// Makes a device the current one for as long as it lives.
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex device) { set_index(device); }
  explicit CUDAGuard(Device device) { set_device(device); }
  ~CUDAGuard() { cuda::set_device(original_); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  void set_device(Device device) {
    TORCH_CHECK(device.is_cuda(), "Expected a CUDA device, but got ", device);
    if (device.has_index()) cuda::set_device(device.index());
  }
  void reset_device(Device device) { set_device(device); }
  void set_index(DeviceIndex device) { cuda::set_device(device); }
  Device original_device() const { return {DeviceType::CUDA, original_}; }
  Device current_device() const { return {DeviceType::CUDA, cuda::current_device()}; }

 private:
  static DeviceIndex CurrentIndex() { return cuda::current_device(); }
  DeviceIndex original_ = CurrentIndex();
};

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  explicit OptionalCUDAGuard(DeviceIndex device) { guard_.emplace(device); }
  void set_device(Device device) { guard_.emplace(device); }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAGuard> guard_;
};

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(const CUDAStream& stream) : device_(stream.device()) {}

 private:
  CUDAGuard device_;
};

inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  throw Error(c10::str("CUDA error: ", cudaGetErrorString(error)));
}

}  // namespace c10::cuda

namespace c10 {
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) {
    if (device.is_cuda()) guard_.set_device(device);
  }

 private:
  cuda::OptionalCUDAGuard guard_;
};
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device && device->is_cuda()) guard_.set_device(*device);
  }

 private:
  cuda::OptionalCUDAGuard guard_;
};
}  // namespace c10

namespace at {
using c10::DeviceGuard;
using c10::OptionalDeviceGuard;
namespace cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::current_device;
using c10::cuda::device_count;
using c10::cuda::device_synchronize;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::set_device;
inline bool is_available() { return device_count() > 0; }
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  static cudaDeviceProp properties[16];
  static bool known[16] = {};
  TORCH_CHECK(device >= 0 && device < 16, "invalid device index ", static_cast<int>(device));
  if (!known[device]) {
    c10::cuda::Check(cudaGetDeviceProperties(&properties[device], device));
    known[device] = true;
  }
  return &properties[device];
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
inline int warp_size() { return 32; }
template <class T>
inline T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
}  // namespace cuda
}  // namespace at
namespace torch::cuda {
using at::cuda::device_count;
using at::cuda::is_available;
inline void synchronize(int64_t = -1) { c10::cuda::Check(cudaDeviceSynchronize()); }
}  // namespace torch::cuda

#define C10_CUDA_CHECK(expression) ::c10::cuda::Check(expression)
#define C10_CUDA_CHECK_WARN(expression) static_cast<void>(expression)
#define C10_CUDA_IGNORE_ERROR(expression) static_cast<void>(expression)
#define C10_CUDA_CLEAR_ERROR() static_cast<void>(cudaGetLastError())
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                               \
  int64_t kmosaic_index_##i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;    \
  for (index_type i = static_cast<index_type>(kmosaic_index_##i); kmosaic_index_##i < (n);    \
       kmosaic_index_##i += static_cast<int64_t>(blockDim.x) * gridDim.x,                     \
                  i = static_cast<index_type>(kmosaic_index_##i))
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

#endif  // KMOSAIC_TORCH_CUDA_H_
