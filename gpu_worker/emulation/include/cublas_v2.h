// The part of cuBLAS that the emulated device has: handles, level 1 to 3 basics in float and
// double, strided batches, GemmEx on float, half and bfloat16. Column-major, as cuBLAS is.
#ifndef KMOSAIC_EMULATION_CUBLAS_V2_H_
#define KMOSAIC_EMULATION_CUBLAS_V2_H_

#include <cuda_runtime.h>
#include <library_types.h>

typedef struct cublasContext* cublasHandle_t;
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
} cublasMath_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70,
} cublasComputeType_t;

#ifdef __cplusplus
extern "C" {
#endif
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
const char* cublasGetStatusString(cublasStatus_t status);
#define KMOSAIC_CUBLAS_DECLARE(letter, type)                                                      \
  cublasStatus_t cublas##letter##gemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,  \
                                      int, int, const type*, const type*, int, const type*, int,  \
                                      const type*, type*, int);                                   \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                              \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const type*,           \
      const type*, int, long long, const type*, int, long long, const type*, type*, int,          \
      long long, int);                                                                            \
  cublasStatus_t cublas##letter##gemmBatched(cublasHandle_t, cublasOperation_t,                   \
                                             cublasOperation_t, int, int, int, const type*,       \
                                             const type* const*, int, const type* const*, int,    \
                                             const type*, type* const*, int, int);                \
  cublasStatus_t cublas##letter##gemv(cublasHandle_t, cublasOperation_t, int, int, const type*,   \
                                      const type*, int, const type*, int, const type*, type*,     \
                                      int);                                                       \
  cublasStatus_t cublas##letter##axpy(cublasHandle_t, int, const type*, const type*, int, type*,  \
                                      int);                                                       \
  cublasStatus_t cublas##letter##scal(cublasHandle_t, int, const type*, type*, int);              \
  cublasStatus_t cublas##letter##dot(cublasHandle_t, int, const type*, int, const type*, int,     \
                                     type*);                                                      \
  cublasStatus_t cublas##letter##geam(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,  \
                                      int, const type*, const type*, int, const type*,            \
                                      const type*, int, type*, int);
KMOSAIC_CUBLAS_DECLARE(S, float)
KMOSAIC_CUBLAS_DECLARE(D, double)
#undef KMOSAIC_CUBLAS_DECLARE
cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                           const __half*, const __half*, int, const __half*, int, const __half*,
                           __half*, int);
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const void* alpha, const void* a, cudaDataType a_type, int lda,
                            const void* b, cudaDataType b_type, int ldb, const void* beta,
                            void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                          int, int, int, const void* alpha, const void* a,
                                          cudaDataType a_type, int lda, long long stride_a,
                                          const void* b, cudaDataType b_type, int ldb,
                                          long long stride_b, const void* beta, void* c,
                                          cudaDataType c_type, int ldc, long long stride_c,
                                          int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm);
#ifdef __cplusplus
}
#endif

// The library's real names carry _v2; both are written in sources.
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
#define cublasSgemv_v2 cublasSgemv

#endif  // KMOSAIC_EMULATION_CUBLAS_V2_H_
