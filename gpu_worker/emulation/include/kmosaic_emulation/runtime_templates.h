// The parts of the CUDA runtime that the toolkit declares for nvcc alone: symbols and function
// attributes.
#ifndef KMOSAIC_EMULATION_RUNTIME_TEMPLATES_H_
#define KMOSAIC_EMULATION_RUNTIME_TEMPLATES_H_

#include "kmosaic_emulation/language.h"

template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes,
                                      size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  memcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset, source,
         bytes);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes,
                                           size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                           cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t bytes,
                                        size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  memcpy(target, reinterpret_cast<const char*>(&symbol) + offset, bytes);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t bytes,
                                             size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                             cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<std::remove_const_t<T>*>(&symbol);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}

// Which kernel an attribute belongs to is not followed: what one kernel may, all may.
template <class T>
inline cudaError_t cudaFuncSetAttribute(T*, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > 227 * 1024) {
      kmosaic_emu_set_error(cudaErrorInvalidValue);
      return cudaErrorInvalidValue;
    }
    kmosaic_emu_allow_dynamic_shared(static_cast<size_t>(value));
  }
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T*, cudaFuncCache) {
  return cudaSuccess;
}
namespace kmosaic_emulation {
template <class... Parameters, size_t... I>
inline void LaunchFromPointers(void (*kernel)(Parameters...), const LaunchShape& shape,
                               void** arguments, std::index_sequence<I...>) {
  (void)arguments;
  Launch(shape, "kernel given to cudaLaunchKernel", kernel,
         *static_cast<std::decay_t<Parameters>*>(arguments[I])...);
}
}  // namespace kmosaic_emulation

template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                    void** arguments, size_t shared_bytes = 0,
                                    cudaStream_t stream = nullptr) {
  kmosaic_emulation::LaunchFromPointers(
      kernel, kmosaic_emulation::LaunchShape(grid, block, shared_bytes, stream), arguments,
      std::index_sequence_for<Parameters...>());
  return static_cast<cudaError_t>(kmosaic_emu_last_error(0));
}

#endif  // KMOSAIC_EMULATION_RUNTIME_TEMPLATES_H_
