// Kernels that use the emulated CUDA language, each with a host entry that returns the number of
// wrong results. Compiled at test time as a candidate's source is.
#include <cooperative_groups.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cub/cub.cuh>
#include <vector>

template <class T>
struct Device {
  explicit Device(size_t n) : count(n) { cudaMalloc(&data, n * sizeof(T)); }
  ~Device() { cudaFree(data); }
  std::vector<T> Host() const {
    std::vector<T> out(count);
    cudaMemcpy(out.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost);
    return out;
  }
  void Set(const std::vector<T>& values) {
    cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  T* data = nullptr;
  size_t count;
};

template <int Tile>
__global__ void __launch_bounds__(Tile* Tile)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
  __shared__ float as[Tile][Tile], bs[Tile][Tile + 1];
  const int row = blockIdx.y * Tile + threadIdx.y, column = blockIdx.x * Tile + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k += Tile) {
    as[threadIdx.y][threadIdx.x] =
        row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] =
        k + threadIdx.y < n && column < n ? b[(k + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Tile; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

extern "C" int run_matmul() {
  const int n = 37;
  std::vector<float> a(n * n), b(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = static_cast<float>(i % 7) - 3;
    b[i] = static_cast<float>(i % 5) - 2;
  }
  Device<float> da(n * n), db(n * n), dc(n * n);
  da.Set(a);
  db.Set(b);
  const dim3 grid((n + 7) / 8, (n + 7) / 8);
  matmul<8><<<grid, dim3(8, 8)>>>(da.data, db.data, dc.data, n);
  int wrong = cudaGetLastError() != cudaSuccess;
  const auto c = dc.Host();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      wrong += c[i * n + j] != sum;
    }
  }
  return wrong;
}

__inline__ __device__ float warp_sum(float value) {
  for (int delta = warpSize / 2; delta > 0; delta >>= 1) {
    value += __shfl_down_sync(0xffffffff, value, delta);
  }
  return value;
}
__global__ void block_sum(const float* in, float* out, int n) {
  extern __shared__ float partial[];
  float value = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) value += in[i];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    value = warp_sum(value);
    if (threadIdx.x == 0) atomicAdd(out, value);
  }
}
extern "C" int run_reduction() {
  std::vector<float> values(1000, 1.0f);
  Device<float> in(1000), out(1);
  in.Set(values);
  cudaMemset(out.data, 0, sizeof(float));
  block_sum<<<3, 128, 4 * sizeof(float)>>>(in.data, out.data, 1000);
  return out.Host()[0] != 3000.0f;
}

__constant__ float weights[4];
__device__ int hits;
__global__ void histogram(const int* in, int* bins, unsigned long long* total, float* scaled) {
  const int i = threadIdx.x;
  atomicAdd(&bins[in[i] & 3], 1);
  atomicMax(&hits, in[i]);
  atomicAdd(total, 2ull);
  unsigned old = 0;
  static_cast<void>(old);
  scaled[i] = weights[in[i] & 3] * rsqrtf(4.0f) + __expf(0.0f) + max(1, 2.5f) + __fdividef(1, 4);
}
extern "C" int run_atomics() {
  std::vector<int> in(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  Device<int> din(64), bins(4);
  Device<unsigned long long> total(1);
  Device<float> scaled(64);
  din.Set(in);
  cudaMemset(bins.data, 0, 16);
  cudaMemset(total.data, 0, 8);
  const float host_weights[4] = {2, 4, 6, 8};
  cudaMemcpyToSymbol(weights, host_weights, sizeof(host_weights));
  histogram<<<1, 64>>>(din.data, bins.data, total.data, scaled.data);
  int largest = 0;
  cudaMemcpyFromSymbol(&largest, hits, sizeof(int));
  int wrong = largest != 63 || total.Host()[0] != 128;
  for (int bin : bins.Host()) wrong += bin != 16;
  const auto got = scaled.Host();
  for (int i = 0; i < 64; ++i) wrong += got[i] != host_weights[i & 3] / 2 + 1 + 2.5f + 0.25f;
  return wrong;
}

template <class T>
__global__ void halves(const T* in, T* out) {
  const T x = in[threadIdx.x];
  T y = __hfma(x, x, hexp(x - x));
  y = __hmax(y, __hadd(x, x));
  out[threadIdx.x] = __shfl_xor_sync(~0u, y, 1);
}
template <class T>
int RunHalves() {
  std::vector<T> in(32);
  for (int i = 0; i < 32; ++i) in[i] = T(static_cast<float>(i) / 4);
  Device<T> din(32), out(32);
  din.Set(in);
  halves<T><<<1, 32>>>(din.data, out.data);
  int wrong = 0;
  const auto got = out.Host();
  for (int i = 0; i < 32; ++i) {
    const float x = static_cast<float>(i ^ 1) / 4;
    wrong += static_cast<float>(got[i]) != static_cast<float>(T(x * x + 1));
  }
  return wrong;
}
extern "C" int run_half() { return RunHalves<__half>() + RunHalves<__nv_bfloat16>(); }

__global__ void vectors(const float4* in, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = __ldg(&in[i]);
  out[i] = make_float4(v.w, v.z, v.y, v.x);
}
extern "C" int run_vectors() {
  std::vector<float> in(40);
  for (int i = 0; i < 40; ++i) in[i] = static_cast<float>(i);
  Device<float> din(40), out(40);
  din.Set(in);
  vectors<<<2, 8>>>(reinterpret_cast<const float4*>(din.data), reinterpret_cast<float4*>(out.data),
                    10);
  int wrong = 0;
  const auto got = out.Host();
  for (int i = 0; i < 40; ++i) wrong += got[i] != static_cast<float>(i / 4 * 4 + 3 - i % 4);
  return wrong;
}

namespace cg = cooperative_groups;
__global__ void groups(int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int sum = static_cast<int>(tile.thread_rank());
  for (int delta = static_cast<int>(tile.size()) / 2; delta > 0; delta /= 2) {
    sum += tile.shfl_down(sum, delta);
  }
  block.sync();
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum;
  if (threadIdx.x % 2 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(&out[8], static_cast<int>(active.size()));
  }
}
extern "C" int run_groups() {
  Device<int> out(9);
  cudaMemset(out.data, 0, 36);
  groups<<<1, 64>>>(out.data);
  const auto got = out.Host();
  int wrong = got[8] != 32;
  for (int i = 0; i < 8; ++i) wrong += got[i] != 28;
  return wrong;
}

__global__ void collectives(const float* in, float* total, float* scan) {
  using Reduce = cub::BlockReduce<float, 64>;
  using Scan = cub::BlockScan<float, 64>;
  __shared__ typename Reduce::TempStorage reduce_storage;
  __shared__ Scan::TempStorage scan_storage;
  const float value = in[threadIdx.x];
  const float sum = Reduce(reduce_storage).Sum(value);
  if (threadIdx.x == 0) *total = sum;
  float prefix;
  Scan(scan_storage).InclusiveSum(value, prefix);
  scan[threadIdx.x] = prefix;
}
extern "C" int run_cub() {
  std::vector<float> in(64, 1.0f);
  Device<float> din(64), total(1), scan(64);
  din.Set(in);
  collectives<<<1, 64>>>(din.data, total.data, scan.data);
  int wrong = total.Host()[0] != 64;
  const auto got = scan.Host();
  for (int i = 0; i < 64; ++i) wrong += got[i] != static_cast<float>(i + 1);
  return wrong;
}

extern "C" int run_cublas() {
  // Column-major: c = a * b with a 2x3, b 3x2.
  Device<float> a(6), b(6), c(4);
  a.Set({1, 4, 2, 5, 3, 6});
  b.Set({7, 9, 11, 8, 10, 12});
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float one = 1, zero = 0;
  int wrong = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, a.data, 2, b.data, 3,
                          &zero, c.data, 2) != CUBLAS_STATUS_SUCCESS;
  wrong += c.Host() != std::vector<float>({58, 139, 64, 154});
  wrong += cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 9, &one, a.data, 2, b.data, 9, &zero,
                       c.data, 2) == CUBLAS_STATUS_SUCCESS;
  cudaGetLastError();
  cublasDestroy(handle);
  return wrong;
}

extern "C" int run_runtime() {
  cudaStream_t stream;
  cudaEvent_t start, stop;
  int wrong = cudaStreamCreate(&stream) != cudaSuccess;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start, stream);
  cudaEventRecord(stop, stream);
  float milliseconds = -1;
  wrong += cudaEventElapsedTime(&milliseconds, start, stop) != cudaSuccess || milliseconds < 0;
  cudaDeviceProp properties;
  wrong += cudaGetDeviceProperties(&properties, 0) != cudaSuccess || properties.major != 9 ||
           properties.warpSize != 32;
  wrong += cudaSetDevice(3) == cudaSuccess;
  wrong += cudaGetLastError() != cudaErrorInvalidDevice;
  Device<int> small(4);
  wrong += cudaMemset(small.data, 0, 17) == cudaSuccess;
  cudaGetLastError();
  wrong += cudaFuncSetAttribute(block_sum, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) ==
           cudaSuccess;
  cudaGetLastError();
  block_sum<<<1, 32, 100 * 1024>>>(nullptr, nullptr, 0);
  wrong += cudaGetLastError() != cudaErrorInvalidValue;
  cudaFuncSetAttribute(block_sum, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024);
  Device<float> out(1);
  block_sum<<<1, 32, 100 * 1024, stream>>>(nullptr, out.data, 0);
  wrong += cudaGetLastError() != cudaSuccess;
  cudaStreamDestroy(stream);
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return wrong;
}

__global__ void asserting(int limit) { assert(static_cast<int>(threadIdx.x) < limit); }
extern "C" int run_assert() {
  asserting<<<1, 8>>>(5);
  return cudaDeviceSynchronize() != cudaErrorAssert;
}

__global__ void overrun(float* shared_out) {
  __shared__ float tile[32];
  tile[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  shared_out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" int run_shared_overrun() {
  Device<float> out(32);
  overrun<<<1, 32>>>(out.data);
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
