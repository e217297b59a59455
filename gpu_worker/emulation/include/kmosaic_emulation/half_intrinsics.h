// Functions on half and bfloat16 that the toolkit implements for devices alone: each goes through
// float, like the toolkit's own host arithmetic.
#ifndef KMOSAIC_EMULATION_HALF_INTRINSICS_H_
#define KMOSAIC_EMULATION_HALF_INTRINSICS_H_

#include "kmosaic_emulation/intrinsics.h"

#define KMOSAIC_EMU_HALF1(name, function)                                                   \
  inline __half h##name(__half x) { return __float2half(function(__half2float(x))); }       \
  inline __half2 h2##name(__half2 x) {                                                      \
    return __floats2half2_rn(function(__low2float(x)), function(__high2float(x)));          \
  }                                                                                         \
  inline __nv_bfloat16 h##name(__nv_bfloat16 x) {                                           \
    return __float2bfloat16(function(__bfloat162float(x)));                                 \
  }                                                                                         \
  inline __nv_bfloat162 h2##name(__nv_bfloat162 x) {                                        \
    return __floats2bfloat162_rn(function(__low2float(x)), function(__high2float(x)));      \
  }
namespace kmosaic_emulation {
inline float Reciprocal(float x) { return 1.0f / x; }
inline float Exp10(float x) { return powf(10.0f, x); }
}  // namespace kmosaic_emulation
KMOSAIC_EMU_HALF1(exp, expf)
KMOSAIC_EMU_HALF1(exp2, exp2f)
KMOSAIC_EMU_HALF1(exp10, kmosaic_emulation::Exp10)
KMOSAIC_EMU_HALF1(log, logf)
KMOSAIC_EMU_HALF1(log2, log2f)
KMOSAIC_EMU_HALF1(log10, log10f)
KMOSAIC_EMU_HALF1(sqrt, sqrtf)
KMOSAIC_EMU_HALF1(rsqrt, rsqrtf)
KMOSAIC_EMU_HALF1(rcp, kmosaic_emulation::Reciprocal)
KMOSAIC_EMU_HALF1(sin, sinf)
KMOSAIC_EMU_HALF1(cos, cosf)
KMOSAIC_EMU_HALF1(tanh, tanhf)
KMOSAIC_EMU_HALF1(floor, floorf)
KMOSAIC_EMU_HALF1(ceil, ceilf)
KMOSAIC_EMU_HALF1(rint, rintf)
KMOSAIC_EMU_HALF1(trunc, truncf)
#undef KMOSAIC_EMU_HALF1

#define KMOSAIC_EMU_HALF_FMA(name, type, type2, to_float, from_float, from_floats)               \
  inline type __hfma##name(type a, type b, type c) {                                             \
    return from_float(fmaf(to_float(a), to_float(b), to_float(c)));                              \
  }                                                                                              \
  inline type2 __hfma2##name(type2 a, type2 b, type2 c) {                                        \
    return from_floats(fmaf(__low2float(a), __low2float(b), __low2float(c)),                     \
                       fmaf(__high2float(a), __high2float(b), __high2float(c)));                 \
  }
KMOSAIC_EMU_HALF_FMA(, __half, __half2, __half2float, __float2half, __floats2half2_rn)
KMOSAIC_EMU_HALF_FMA(, __nv_bfloat16, __nv_bfloat162, __bfloat162float, __float2bfloat16,
                     __floats2bfloat162_rn)
#undef KMOSAIC_EMU_HALF_FMA

#endif  // KMOSAIC_EMULATION_HALF_INTRINSICS_H_
