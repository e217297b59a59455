// Device intrinsics and the mathematical functions that CUDA has and the C library has not. Fast
// approximations (__expf and the like) are the exact functions here; rounding modes other than to
// nearest differ in the last bit only.
#ifndef KMOSAIC_EMULATION_INTRINSICS_H_
#define KMOSAIC_EMULATION_INTRINSICS_H_

#include "kmosaic_emulation/language.h"

// ---- cached loads and stores
#define KMOSAIC_EMU_LOAD(name)      \
  template <class T>                \
  inline T name(const T* address) { \
    return *address;                \
  }
KMOSAIC_EMU_LOAD(__ldg)
KMOSAIC_EMU_LOAD(__ldca)
KMOSAIC_EMU_LOAD(__ldcg)
KMOSAIC_EMU_LOAD(__ldcs)
KMOSAIC_EMU_LOAD(__ldcv)
KMOSAIC_EMU_LOAD(__ldlu)
#undef KMOSAIC_EMU_LOAD
#define KMOSAIC_EMU_STORE(name)              \
  template <class T>                         \
  inline void name(T* address, T value) {    \
    *address = value;                        \
  }
KMOSAIC_EMU_STORE(__stcg)
KMOSAIC_EMU_STORE(__stcs)
KMOSAIC_EMU_STORE(__stwb)
KMOSAIC_EMU_STORE(__stwt)
#undef KMOSAIC_EMU_STORE

// ---- min and max: a NaN gives way to the other value
#define KMOSAIC_EMU_MIN_MAX(name, less)                                                     \
  template <class A, class B,                                                               \
            class = std::enable_if_t<std::is_arithmetic<A>::value &&                        \
                                     std::is_arithmetic<B>::value>>                         \
  constexpr std::common_type_t<A, B> name(A a, B b) {                                       \
    using C = std::common_type_t<A, B>;                                                     \
    const C x = static_cast<C>(a), y = static_cast<C>(b);                                   \
    if (x != x) return y;                                                                   \
    if (y != y) return x;                                                                   \
    return less ? x : y;                                                                    \
  }                                                                                         \
  constexpr float name(float x, float y) { return x != x ? y : y != y ? x : less ? x : y; } \
  constexpr double name(double x, double y) { return x != x ? y : y != y ? x : less ? x : y; }
KMOSAIC_EMU_MIN_MAX(min, x < y)
KMOSAIC_EMU_MIN_MAX(max, x > y)
#undef KMOSAIC_EMU_MIN_MAX

// ---- float functions under other names
#define KMOSAIC_EMU_F1(name, expression) \
  inline float name(float x) noexcept { return expression; }
#define KMOSAIC_EMU_D1(name, expression) \
  inline double name(double x) noexcept { return expression; }
KMOSAIC_EMU_F1(__expf, expf(x))
KMOSAIC_EMU_F1(__exp10f, powf(10.0f, x))
KMOSAIC_EMU_F1(__logf, logf(x))
KMOSAIC_EMU_F1(__log2f, log2f(x))
KMOSAIC_EMU_F1(__log10f, log10f(x))
KMOSAIC_EMU_F1(__sinf, sinf(x))
KMOSAIC_EMU_F1(__cosf, cosf(x))
KMOSAIC_EMU_F1(__tanf, tanf(x))
KMOSAIC_EMU_F1(__tanhf, tanhf(x))
KMOSAIC_EMU_F1(__saturatef, x != x ? 0.0f : x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x)
KMOSAIC_EMU_F1(rsqrtf, 1.0f / sqrtf(x))
KMOSAIC_EMU_D1(rsqrt, 1.0 / sqrt(x))
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
KMOSAIC_EMU_F1(rcbrtf, 1.0f / cbrtf(x))
KMOSAIC_EMU_D1(rcbrt, 1.0 / cbrt(x))
KMOSAIC_EMU_F1(sinpif, static_cast<float>(sin(3.14159265358979323846 * x)))
KMOSAIC_EMU_F1(cospif, static_cast<float>(cos(3.14159265358979323846 * x)))
KMOSAIC_EMU_D1(sinpi, sin(3.14159265358979323846 * x))
KMOSAIC_EMU_D1(cospi, cos(3.14159265358979323846 * x))
KMOSAIC_EMU_F1(normcdff, static_cast<float>(0.5 * erfc(-x * 0.70710678118654752440)))
KMOSAIC_EMU_D1(normcdf, 0.5 * erfc(-x * 0.70710678118654752440))
KMOSAIC_EMU_D1(erfcx, exp(x * x) * erfc(x))
KMOSAIC_EMU_F1(erfcxf, static_cast<float>(erfcx(static_cast<double>(x))))
inline float fdividef(float x, float y) noexcept { return x / y; }
inline float __fdividef(float x, float y) noexcept { return x / y; }
inline float __powf(float x, float y) noexcept { return powf(x, y); }
inline void __sincosf(float x, float* s, float* c) noexcept { sincosf(x, s, c); }
inline void sincospif(float x, float* s, float* c) noexcept {
  *s = sinpif(x);
  *c = cospif(x);
}
inline float rhypotf(float x, float y) noexcept { return 1.0f / hypotf(x, y); }
inline float norm3df(float x, float y, float z) noexcept { return sqrtf(x * x + y * y + z * z); }
inline float rnorm3df(float x, float y, float z) noexcept { return 1.0f / norm3df(x, y, z); }
// Newton's method on erf from Giles' starting polynomial (M. Giles, "Approximating the erfinv
// function", GPU Computing Gems, 2011).
inline double erfinv(double x) noexcept {
  if (!(x > -1.0 && x < 1.0)) return x == 1.0 ? INFINITY : x == -1.0 ? -INFINITY : NAN;
  double w = -log((1.0 - x) * (1.0 + x)), y;
  if (w < 5.0) {
    w -= 2.5;
    y = x * (1.50140941 + w * (0.246640727 + w * (-0.00417768164 + w * -0.00125372503)));
  } else {
    w = sqrt(w) - 3.0;
    y = x * (2.83297682 + w * (1.00167406 + w * (0.00943887047 + w * -0.0076224613)));
  }
  for (int i = 0; i < 4; ++i) {
    y -= (erf(y) - x) / (1.12837916709551257390 * exp(-y * y));
  }
  return y;
}
KMOSAIC_EMU_F1(erfinvf, static_cast<float>(erfinv(static_cast<double>(x))))
KMOSAIC_EMU_D1(erfcinv, erfinv(1.0 - x))
KMOSAIC_EMU_F1(erfcinvf, static_cast<float>(erfinv(1.0 - x)))
KMOSAIC_EMU_D1(normcdfinv, 1.41421356237309504880 * erfinv(2.0 * x - 1.0))
KMOSAIC_EMU_F1(normcdfinvf, static_cast<float>(normcdfinv(static_cast<double>(x))))

// ---- arithmetic with a rounding mode in the name
#define KMOSAIC_EMU_ROUNDED(mode)                                                  \
  inline float __fadd_##mode(float x, float y) { return x + y; }                   \
  inline float __fsub_##mode(float x, float y) { return x - y; }                   \
  inline float __fmul_##mode(float x, float y) { return x * y; }                   \
  inline float __fdiv_##mode(float x, float y) { return x / y; }                   \
  inline float __fmaf_##mode(float x, float y, float z) { return fmaf(x, y, z); }  \
  inline float __frcp_##mode(float x) { return 1.0f / x; }                         \
  inline float __fsqrt_##mode(float x) { return sqrtf(x); }                        \
  inline double __dadd_##mode(double x, double y) { return x + y; }                \
  inline double __dsub_##mode(double x, double y) { return x - y; }                \
  inline double __dmul_##mode(double x, double y) { return x * y; }                \
  inline double __ddiv_##mode(double x, double y) { return x / y; }                \
  inline double __fma_##mode(double x, double y, double z) { return fma(x, y, z); } \
  inline double __drcp_##mode(double x) { return 1.0 / x; }                        \
  inline double __dsqrt_##mode(double x) { return sqrt(x); }                       \
  inline float __double2float_##mode(double x) { return static_cast<float>(x); }   \
  inline float __int2float_##mode(int x) { return static_cast<float>(x); }         \
  inline float __uint2float_##mode(unsigned x) { return static_cast<float>(x); }   \
  inline float __ll2float_##mode(long long x) { return static_cast<float>(x); }    \
  inline float __ull2float_##mode(unsigned long long x) { return static_cast<float>(x); }
KMOSAIC_EMU_ROUNDED(rn)
KMOSAIC_EMU_ROUNDED(rz)
KMOSAIC_EMU_ROUNDED(ru)
KMOSAIC_EMU_ROUNDED(rd)
#undef KMOSAIC_EMU_ROUNDED
KMOSAIC_EMU_F1(__frsqrt_rn, 1.0f / sqrtf(x))

namespace kmosaic_emulation {
// Conversions saturate and turn NaN into 0, as on a device.
template <class To>
inline To ToInteger(double x) {
  if (x != x) return 0;
  if (x <= static_cast<double>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  if (x >= static_cast<double>(std::numeric_limits<To>::max())) {
    return std::numeric_limits<To>::max();
  }
  return static_cast<To>(x);
}
template <class To, class From>
inline To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
}  // namespace kmosaic_emulation

#define KMOSAIC_EMU_TO_INTEGER(mode, round)                                                       \
  inline int __float2int_##mode(float x) { return kmosaic_emulation::ToInteger<int>(round(x)); }  \
  inline unsigned __float2uint_##mode(float x) {                                                  \
    return kmosaic_emulation::ToInteger<unsigned>(round(x));                                      \
  }                                                                                               \
  inline long long __float2ll_##mode(float x) {                                                   \
    return kmosaic_emulation::ToInteger<long long>(round(x));                                     \
  }                                                                                               \
  inline unsigned long long __float2ull_##mode(float x) {                                         \
    return kmosaic_emulation::ToInteger<unsigned long long>(round(x));                            \
  }                                                                                               \
  inline int __double2int_##mode(double x) { return kmosaic_emulation::ToInteger<int>(round(x)); } \
  inline unsigned __double2uint_##mode(double x) {                                                \
    return kmosaic_emulation::ToInteger<unsigned>(round(x));                                      \
  }                                                                                               \
  inline long long __double2ll_##mode(double x) {                                                 \
    return kmosaic_emulation::ToInteger<long long>(round(x));                                     \
  }
KMOSAIC_EMU_TO_INTEGER(rn, ::rint)
KMOSAIC_EMU_TO_INTEGER(rz, ::trunc)
KMOSAIC_EMU_TO_INTEGER(ru, ::ceil)
KMOSAIC_EMU_TO_INTEGER(rd, ::floor)
#undef KMOSAIC_EMU_TO_INTEGER
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }

// ---- bits
inline int __float_as_int(float x) { return kmosaic_emulation::BitCast<int>(x); }
inline unsigned __float_as_uint(float x) { return kmosaic_emulation::BitCast<unsigned>(x); }
inline float __int_as_float(int x) { return kmosaic_emulation::BitCast<float>(x); }
inline float __uint_as_float(unsigned x) { return kmosaic_emulation::BitCast<float>(x); }
inline long long __double_as_longlong(double x) {
  return kmosaic_emulation::BitCast<long long>(x);
}
inline double __longlong_as_double(long long x) { return kmosaic_emulation::BitCast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int hi, int lo) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<uint64_t>(static_cast<uint32_t>(hi)) << 32 | static_cast<uint32_t>(lo)));
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (x >> i & 1u) << (31 - i);
  return out;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (choice & 7))) & 0xff;
    if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;  // the sign, replicated
    out |= byte << (8 * i);
  }
  return out;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) >> (shift & 31));
}
inline int __mul24(int x, int y) {
  const auto low24 = [](int v) { return static_cast<int>(static_cast<unsigned>(v) << 8) >> 8; };
  return static_cast<int>(static_cast<int64_t>(low24(x)) * low24(y));
}
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<int64_t>(x) * y >> 32);
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline int __hadd(int x, int y) {
  return static_cast<int>((static_cast<int64_t>(x) + y) >> 1);
}
inline int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<int64_t>(x) + y + 1) >> 1);
}
inline unsigned __sad(int x, int y, unsigned z) {
  return z + static_cast<unsigned>(x > y ? static_cast<int64_t>(x) - y
                                         : static_cast<int64_t>(y) - x);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int>(static_cast<int8_t>(a >> (8 * i))) * static_cast<int8_t>(b >> (8 * i));
  }
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
  return c;
}

// ---- address spaces: one flat space here
inline size_t __cvta_generic_to_shared(const void* address) {
  return reinterpret_cast<size_t>(address);
}
inline size_t __cvta_generic_to_global(const void* address) {
  return reinterpret_cast<size_t>(address);
}

#undef KMOSAIC_EMU_F1
#undef KMOSAIC_EMU_D1

#endif  // KMOSAIC_EMULATION_INTRINSICS_H_
