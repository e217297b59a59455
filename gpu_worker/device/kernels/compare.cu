// Comparison of outputs with what is expected, in two passes over the numbers:
// harness/comparison.py has the formulas and does the same by operations of torch, which read and
// write memory some hundred times per number.
//
// Numbers lie in rows of `block` (the last may be shorter). A warp takes a row; where this is
// compiled for a CPU, a test does, with one lane.

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
static constexpr unsigned kLanes = 32;
template <typename T, typename Operation>
__device__ T AcrossLanes(T value, Operation operation) {
  for (unsigned offset = kLanes / 2; offset > 0; offset /= 2) {
    value = operation(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}
__device__ inline void AtomicMax(double* place, double value) {
  // Of numbers that are not negative; their bits are in the order of their values.
  atomicMax(reinterpret_cast<unsigned long long*>(place), __double_as_longlong(value));
}
#else
static constexpr unsigned kLanes = 1;
template <typename T, typename Operation>
T AcrossLanes(T value, Operation) {
  return value;
}
#endif

namespace {

struct Sum {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Largest {
  __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};
struct Either {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a | b; }
};

__device__ inline bool IsFinite(double value) { return value - value == 0; }
__device__ inline double Distance(double a, double b) {
  double difference = a - b;
  return difference < 0 ? -difference : difference;
}

template <typename T>
__device__ double Wide(T value) {
  return static_cast<double>(static_cast<float>(value));
}
template <>
__device__ double Wide(double value) {
  return value;
}

// What the bounds are made of. `row_rms` and `row_error` have an element per row; `sums`: of
// squares of the reference, of squares of the baseline's error, of squares of what of it is beyond
// rounding, and the count of finite numbers.
template <typename T, typename R>
__device__ void Field(const R* reference, const T* baseline, unsigned long long count,
                      unsigned long long block, double unit, double* row_rms, double* row_error,
                      double* sums) {
  unsigned long long thread =
      blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
  unsigned long long warps = gridDim.x * static_cast<unsigned long long>(blockDim.x) / kLanes;
  unsigned lane = static_cast<unsigned>(thread % kLanes);
  double all[4] = {0, 0, 0, 0};
  for (unsigned long long row = thread / kLanes; row * block < count; row += warps) {
    unsigned long long end = (row + 1) * block < count ? (row + 1) * block : count;
    double squares = 0, numbers = 0, errors = 0, excesses = 0, largest = 0;
    for (unsigned long long i = row * block + lane; i < end; i += kLanes) {
      double right = Wide(reference[i]);
      double base = Wide(baseline[i]);
      if (!IsFinite(right) || !IsFinite(base)) continue;
      double error = Distance(base, right);
      double excess = error - unit * Distance(right, 0);
      if (excess < 0) excess = 0;
      squares += right * right;
      errors += error * error;
      excesses += excess * excess;
      numbers += 1;
      if (excess > largest) largest = excess;
    }
    squares = AcrossLanes(squares, Sum());
    numbers = AcrossLanes(numbers, Sum());
    largest = AcrossLanes(largest, Largest());
    if (lane == 0) {
      row_rms[row] = sqrt(squares / (numbers > 1 ? numbers : 1));
      row_error[row] = largest;
      all[0] += squares;
      all[3] += numbers;
    }
    all[1] += errors;
    all[2] += excesses;
  }
  for (int i = 0; i < 4; ++i) {
    double total = AcrossLanes(all[i], Sum());
    if (lane == 0 && total != 0) atomicAdd(&sums[i], total);
  }
}

// Whether every number is within its bound. `sums`: of squares of the error, of squares of the
// error of zeros, the largest share of a bound that an error takes. `flags`: bit 0, something is
// not finite or not right; bit 1, zeros are not right.
template <typename T, typename R>
__device__ void Check(const R* reference, const T* baseline, const T* got, unsigned long long count,
                      unsigned long long block, double unit, double accumulation, double factor,
                      double global_rms, double error_floor, const double* row_rms,
                      const double* row_error, double* sums, unsigned* flags) {
  unsigned long long thread =
      blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
  unsigned long long warps = gridDim.x * static_cast<unsigned long long>(blockDim.x) / kLanes;
  unsigned lane = static_cast<unsigned>(thread % kLanes);
  double squares = 0, zero_squares = 0, worst = 0;
  unsigned found = 0;
  for (unsigned long long row = thread / kLanes; row * block < count; row += warps) {
    unsigned long long end = (row + 1) * block < count ? (row + 1) * block : count;
    double local = sqrt(row_rms[row] * global_rms);
    double least = row_error[row] > error_floor ? row_error[row] : error_floor;
    for (unsigned long long i = row * block + lane; i < end; i += kLanes) {
      double right = Wide(reference[i]);
      double base = Wide(baseline[i]);
      double value = Wide(got[i]);
      double size = Distance(right, 0);
      double bound = accumulation * (size > local ? size : local);
      if (bound < least) bound = least;
      double tolerance = 2 * unit * size + factor * bound;
      double error = Distance(value, right);
      double other = Distance(value, base);
      if (other < error) error = other;
      double zero_error = Distance(base, 0);
      if (size < zero_error) zero_error = size;
      // NaN is not at most anything.
      if (!(error <= tolerance) || !IsFinite(right) || !IsFinite(base)) found |= 1;
      if (zero_error > tolerance) found |= 2;
      squares += error * error;
      zero_squares += zero_error * zero_error;
      if (error != 0 && error / tolerance > worst) worst = error / tolerance;
    }
  }
  squares = AcrossLanes(squares, Sum());
  zero_squares = AcrossLanes(zero_squares, Sum());
  worst = AcrossLanes(worst, Largest());
  found = AcrossLanes(found, Either());
  if (lane != 0) return;
  if (squares != 0) atomicAdd(&sums[0], squares);
  if (zero_squares != 0) atomicAdd(&sums[1], zero_squares);
  if (worst > 0) AtomicMax(&sums[2], worst);
  if (found != 0) atomicOr(flags, found);
}

}  // namespace

// NAME: of the outputs' type, then "wide" where the reference is in float64.
#define KMOSAIC_COMPARE(NAME, T, R)                                                              \
  extern "C" __global__ void kmosaic_field_##NAME(                                               \
      const R* reference, const T* baseline, unsigned long long count, unsigned long long block, \
      double unit, double* row_rms, double* row_error, double* sums) {                           \
    Field<T, R>(reference, baseline, count, block, unit, row_rms, row_error, sums);              \
  }                                                                                              \
  extern "C" __global__ void kmosaic_check_##NAME(                                               \
      const R* reference, const T* baseline, const T* got, unsigned long long count,             \
      unsigned long long block, double unit, double accumulation, double factor,                 \
      double global_rms, double error_floor, const double* row_rms, const double* row_error,     \
      double* sums, unsigned* flags) {                                                           \
    Check<T, R>(reference, baseline, got, count, block, unit, accumulation, factor, global_rms,  \
                error_floor, row_rms, row_error, sums, flags);                                   \
  }

KMOSAIC_COMPARE(float32, float, float)
KMOSAIC_COMPARE(float32_wide, float, double)
KMOSAIC_COMPARE(float64, double, double)
#ifdef __CUDACC__
KMOSAIC_COMPARE(float16, __half, __half)
KMOSAIC_COMPARE(float16_wide, __half, double)
KMOSAIC_COMPARE(bfloat16, __nv_bfloat16, __nv_bfloat16)
KMOSAIC_COMPARE(bfloat16_wide, __nv_bfloat16, double)
#endif
