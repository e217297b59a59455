// cuBLAS on the host: plain loops, accumulation in double. Linked into
// every extension with hidden symbols, like cudart.cc. Reads and writes of device memory are
// checked against the allocation first, so that a wrong leading dimension is an error and no
// crash.
#include <cublas_v2.h>

#include <cstdlib>

#include "kmosaic_emulation/runtime_api.h"

namespace {

bool Fits(const void* address, long long elements, size_t element_bytes) {
  void* start = nullptr;
  size_t size = 0;
  if (elements <= 0) return true;
  if (kmosaic_emu_find(address, &start, &size) == 0) return address != nullptr;
  const size_t offset =
      static_cast<size_t>(static_cast<const char*>(address) - static_cast<const char*>(start));
  return static_cast<size_t>(elements) <= (size - offset) / element_bytes;
}

long long Extent(int rows, int columns, int leading) {
  return rows == 0 || columns == 0 ? 0 : static_cast<long long>(columns - 1) * leading + rows;
}

double Load(const float* p, long long i) { return static_cast<double>(p[i]); }
double Load(const double* p, long long i) { return p[i]; }
double Load(const __half* p, long long i) { return static_cast<double>(__half2float(p[i])); }
double Load(const __nv_bfloat16* p, long long i) {
  return static_cast<double>(__bfloat162float(p[i]));
}
void Store(float* p, long long i, double v) { p[i] = static_cast<float>(v); }
void Store(double* p, long long i, double v) { p[i] = v; }
void Store(__half* p, long long i, double v) { p[i] = __float2half(static_cast<float>(v)); }
void Store(__nv_bfloat16* p, long long i, double v) {
  p[i] = __float2bfloat16(static_cast<float>(v));
}

template <class A, class B, class C>
cublasStatus_t Gemm(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    double alpha, const A* a, int lda, const B* b, int ldb, double beta, C* c,
                    int ldc) {
  const bool ta = op_a != CUBLAS_OP_N, tb = op_b != CUBLAS_OP_N;
  if (m < 0 || n < 0 || k < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || lda < 1 ||
      ldb < 1 || ldc < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Fits(a, ta ? Extent(k, m, lda) : Extent(m, k, lda), sizeof(A)) ||
      !Fits(b, tb ? Extent(n, k, ldb) : Extent(k, n, ldb), sizeof(B)) ||
      !Fits(c, Extent(m, n, ldc), sizeof(C))) {
    kmosaic_emu_set_error(cudaErrorIllegalAddress);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int p = 0; p < k; ++p) {
        const double x =
            Load(a, ta ? static_cast<long long>(i) * lda + p : static_cast<long long>(p) * lda + i);
        const double y =
            Load(b, tb ? static_cast<long long>(p) * ldb + j : static_cast<long long>(j) * ldb + p);
        sum += x * y;
      }
      const long long at = static_cast<long long>(j) * ldc + i;
      // With beta 0, C is not read: it may hold anything.
      Store(c, at, alpha * sum + (beta == 0 ? 0 : beta * Load(c, at)));
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t Gemv(cublasOperation_t op, int m, int n, double alpha, const T* a, int lda,
                    const T* x, int incx, double beta, T* y, int incy) {
  if (m < 0 || n < 0 || lda < m || incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  const bool transposed = op != CUBLAS_OP_N;
  const int rows = transposed ? n : m, inner = transposed ? m : n;
  if (!Fits(a, Extent(m, n, lda), sizeof(T)) || !Fits(x, Extent(1, inner, incx), sizeof(T)) ||
      !Fits(y, Extent(1, rows, incy), sizeof(T))) {
    kmosaic_emu_set_error(cudaErrorIllegalAddress);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int p = 0; p < inner; ++p) {
      sum += Load(a, transposed ? static_cast<long long>(i) * lda + p
                                : static_cast<long long>(p) * lda + i) *
             Load(x, static_cast<long long>(p) * incx);
    }
    const long long at = static_cast<long long>(i) * incy;
    Store(y, at, alpha * sum + (beta == 0 ? 0 : beta * Load(y, at)));
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Calls f with a typed pointer for the three types that GemmEx takes here.
template <class F>
cublasStatus_t WithType(cudaDataType type, const void* p, F f) {
  switch (type) {
    case CUDA_R_32F:
      return f(static_cast<const float*>(p));
    case CUDA_R_16F:
      return f(static_cast<const __half*>(p));
    case CUDA_R_16BF:
      return f(static_cast<const __nv_bfloat16*>(p));
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

double ScaleOf(const void* p, cublasComputeType_t compute) {
  if (compute == CUBLAS_COMPUTE_16F) return Load(static_cast<const __half*>(p), 0);
  if (compute == CUBLAS_COMPUTE_64F) return *static_cast<const double*>(p);
  return static_cast<double>(*static_cast<const float*>(p));
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = static_cast<cublasHandle_t>(std::malloc(1));
  return *handle == nullptr ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  std::free(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
// Host and device pointers are the same here.
cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

#define KMOSAIC_CUBLAS_DEFINE(letter, type)                                                        \
  cublasStatus_t cublas##letter##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb,  \
                                      int m, int n, int k, const type* alpha, const type* a,       \
                                      int lda, const type* b, int ldb, const type* beta, type* c,  \
                                      int ldc) {                                                   \
    return Gemm(ta, tb, m, n, k, Load(alpha, 0), a, lda, b, ldb, Load(beta, 0), c, ldc);           \
  }                                                                                                \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                               \
      cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,             \
      const type* alpha, const type* a, int lda, long long sa, const type* b, int ldb,             \
      long long sb, const type* beta, type* c, int ldc, long long sc, int count) {                 \
    for (int i = 0; i < count; ++i) {                                                              \
      const cublasStatus_t status = Gemm(ta, tb, m, n, k, Load(alpha, 0), a + i * sa, lda,         \
                                         b + i * sb, ldb, Load(beta, 0), c + i * sc, ldc);         \
      if (status != CUBLAS_STATUS_SUCCESS) return status;                                          \
    }                                                                                              \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }                                                                                                \
  cublasStatus_t cublas##letter##gemmBatched(                                                      \
      cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,             \
      const type* alpha, const type* const* a, int lda, const type* const* b, int ldb,             \
      const type* beta, type* const* c, int ldc, int count) {                                      \
    for (int i = 0; i < count; ++i) {                                                              \
      const cublasStatus_t status =                                                                \
          Gemm(ta, tb, m, n, k, Load(alpha, 0), a[i], lda, b[i], ldb, Load(beta, 0), c[i], ldc);   \
      if (status != CUBLAS_STATUS_SUCCESS) return status;                                          \
    }                                                                                              \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }                                                                                                \
  cublasStatus_t cublas##letter##gemv(cublasHandle_t, cublasOperation_t op, int m, int n,          \
                                      const type* alpha, const type* a, int lda, const type* x,    \
                                      int incx, const type* beta, type* y, int incy) {             \
    return Gemv(op, m, n, Load(alpha, 0), a, lda, x, incx, Load(beta, 0), y, incy);                \
  }                                                                                                \
  cublasStatus_t cublas##letter##axpy(cublasHandle_t, int n, const type* alpha, const type* x,     \
                                      int incx, type* y, int incy) {                               \
    if (!Fits(x, Extent(1, n, incx), sizeof(type)) || !Fits(y, Extent(1, n, incy), sizeof(type)))  \
      return CUBLAS_STATUS_EXECUTION_FAILED;                                                       \
    for (long long i = 0; i < n; ++i) y[i * incy] += *alpha * x[i * incx];                         \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }                                                                                                \
  cublasStatus_t cublas##letter##scal(cublasHandle_t, int n, const type* alpha, type* x,           \
                                      int incx) {                                                  \
    if (!Fits(x, Extent(1, n, incx), sizeof(type))) return CUBLAS_STATUS_EXECUTION_FAILED;         \
    for (long long i = 0; i < n; ++i) x[i * incx] *= *alpha;                                       \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }                                                                                                \
  cublasStatus_t cublas##letter##dot(cublasHandle_t, int n, const type* x, int incx,               \
                                     const type* y, int incy, type* result) {                      \
    if (!Fits(x, Extent(1, n, incx), sizeof(type)) || !Fits(y, Extent(1, n, incy), sizeof(type)))  \
      return CUBLAS_STATUS_EXECUTION_FAILED;                                                       \
    double sum = 0;                                                                                \
    for (long long i = 0; i < n; ++i) sum += Load(x, i * incx) * Load(y, i * incy);                \
    Store(result, 0, sum);                                                                         \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }                                                                                                \
  cublasStatus_t cublas##letter##geam(                                                             \
      cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const type* alpha, \
      const type* a, int lda, const type* beta, const type* b, int ldb, type* c, int ldc) {        \
    const auto at = [](const type* p, cublasOperation_t op, int ld, long long i, long long j) {    \
      return op == CUBLAS_OP_N ? p[j * ld + i] : p[i * ld + j];                                    \
    };                                                                                             \
    for (long long j = 0; j < n; ++j) {                                                            \
      for (long long i = 0; i < m; ++i) {                                                          \
        type sum = 0;                                                                              \
        if (*alpha != 0) sum += *alpha * at(a, ta, lda, i, j);                                     \
        if (*beta != 0) sum += *beta * at(b, tb, ldb, i, j);                                       \
        c[j * ldc + i] = sum;                                                                      \
      }                                                                                            \
    }                                                                                              \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }
KMOSAIC_CUBLAS_DEFINE(S, float)
KMOSAIC_CUBLAS_DEFINE(D, double)
#undef KMOSAIC_CUBLAS_DEFINE

cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                           int k, const __half* alpha, const __half* a, int lda, const __half* b,
                           int ldb, const __half* beta, __half* c, int ldc) {
  return Gemm(ta, tb, m, n, k, Load(alpha, 0), a, lda, b, ldb, Load(beta, 0), c, ldc);
}

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                            int lda, const void* b, cudaDataType b_type, int ldb, const void* beta,
                            void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  return WithType(a_type, a, [&](const auto* pa) {
    return WithType(b_type, b, [&](const auto* pb) {
      return WithType(c_type, c, [&](const auto* pc) {
        using C = std::remove_const_t<std::remove_pointer_t<decltype(pc)>>;
        return Gemm(ta, tb, m, n, k, ScaleOf(alpha, compute), pa, lda, pb, ldb,
                    ScaleOf(beta, compute), const_cast<C*>(pc), ldc);
      });
    });
  });
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType b_type, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  for (int i = 0; i < count; ++i) {
    const cublasStatus_t status = WithType(a_type, a, [&](const auto* pa) {
      return WithType(b_type, b, [&](const auto* pb) {
        return WithType(c_type, c, [&](const auto* pc) {
          using C = std::remove_const_t<std::remove_pointer_t<decltype(pc)>>;
          return Gemm(ta, tb, m, n, k, ScaleOf(alpha, compute), pa + i * stride_a, lda,
                      pb + i * stride_b, ldb, ScaleOf(beta, compute),
                      const_cast<C*>(pc) + i * stride_c, ldc);
        });
      });
    });
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
