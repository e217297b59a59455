// c10::Half and c10::BFloat16: 16 bits, arithmetic through float.
#ifndef KMOSAIC_TORCH_HALF_H_
#define KMOSAIC_TORCH_HALF_H_

#include "kmosaic_torch/base.h"

#if defined(__CUDACC__) || defined(KMOSAIC_EMULATED_DEVICE)
#define KMOSAIC_TORCH_DEVICE_TYPES 1
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace c10 {
namespace detail {

// IEEE 754 binary16 to binary32 and back, round to nearest even; without the toolkit's types.
inline float HalfBitsToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t exponent = bits >> 10 & 0x1fu, mantissa = bits & 0x3ffu, out;
  if (exponent == 0x1f) {
    out = sign | 0x7f800000u | mantissa << 13;
  } else if (exponent != 0) {
    out = sign | (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa == 0) {
    out = sign;
  } else {
    exponent = 113;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    out = sign | exponent << 23 | (mantissa & 0x3ffu) << 13;
  }
  float value;
  memcpy(&value, &out, sizeof(value));
  return value;
}
inline uint16_t FloatToHalfBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: add a number that shifts the bits into place
    float scaled;
    const uint32_t absolute = magnitude;
    memcpy(&scaled, &absolute, sizeof(scaled));
    scaled += 0.5f;
    uint32_t shifted;
    memcpy(&shifted, &scaled, sizeof(shifted));
    return static_cast<uint16_t>(sign | (shifted - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}
inline uint16_t FloatToBFloat16Bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace detail

#if defined(KMOSAIC_TORCH_DEVICE_TYPES)
// `conversion` is empty or `explicit`, as in c10: an implicit one makes comparisons ambiguous
// with the toolkit's own operators.
#define KMOSAIC_TORCH_16_BIT_BODY(name, native, conversion, to_float, from_float, fallback_to,    \
                                  fallback_from)                                                  \
  C10_HOST_DEVICE name(float value) {                                                             \
    const native converted = from_float(value);                                                   \
    memcpy(&x, &converted, sizeof(x));                                                            \
  }                                                                                               \
  C10_HOST_DEVICE operator float() const {                                                        \
    native converted;                                                                             \
    memcpy(static_cast<void*>(&converted), &x, sizeof(x));                                        \
    return to_float(converted);                                                                   \
  }                                                                                               \
  C10_HOST_DEVICE name(const native& value) { memcpy(&x, &value, sizeof(x)); }                    \
  C10_HOST_DEVICE conversion operator native() const {                                            \
    native converted;                                                                             \
    memcpy(static_cast<void*>(&converted), &x, sizeof(x));                                        \
    return converted;                                                                             \
  }
#else
#define KMOSAIC_TORCH_16_BIT_BODY(name, native, conversion, to_float, from_float, fallback_to,    \
                                  fallback_from)                                                  \
  name(float value) : x(fallback_from(value)) {}                                                  \
  operator float() const { return fallback_to(x); }
#endif

namespace detail {
inline float BFloat16BitsToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}
}  // namespace detail

struct alignas(2) Half {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  uint16_t x;
  Half() = default;
  C10_HOST_DEVICE constexpr Half(uint16_t bits, from_bits_t) : x(bits) {}
  KMOSAIC_TORCH_16_BIT_BODY(Half, __half, , __half2float, __float2half, detail::HalfBitsToFloat,
                            detail::FloatToHalfBits)
};
struct alignas(2) BFloat16 {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  uint16_t x;
  BFloat16() = default;
  C10_HOST_DEVICE constexpr BFloat16(uint16_t bits, from_bits_t) : x(bits) {}
  KMOSAIC_TORCH_16_BIT_BODY(BFloat16, __nv_bfloat16, explicit, __bfloat162float,
                            __float2bfloat16, detail::BFloat16BitsToFloat, detail::FloatToBFloat16Bits)
};
#undef KMOSAIC_TORCH_16_BIT_BODY

// The same overloads as c10's, so that the same mixed expressions are well or ill formed.
#define KMOSAIC_TORCH_ARITHMETIC(T)                                                              \
  C10_HOST_DEVICE inline T operator+(const T& a, const T& b) {                                   \
    return static_cast<float>(a) + static_cast<float>(b);                                        \
  }                                                                                              \
  C10_HOST_DEVICE inline T operator-(const T& a, const T& b) {                                   \
    return static_cast<float>(a) - static_cast<float>(b);                                        \
  }                                                                                              \
  C10_HOST_DEVICE inline T operator*(const T& a, const T& b) {                                   \
    return static_cast<float>(a) * static_cast<float>(b);                                        \
  }                                                                                              \
  C10_HOST_DEVICE inline T operator/(const T& a, const T& b) {                                   \
    return static_cast<float>(a) / static_cast<float>(b);                                        \
  }                                                                                              \
  C10_HOST_DEVICE inline T operator-(const T& a) { return -static_cast<float>(a); }              \
  C10_HOST_DEVICE inline T& operator+=(T& a, const T& b) { return a = a + b; }                   \
  C10_HOST_DEVICE inline T& operator-=(T& a, const T& b) { return a = a - b; }                   \
  C10_HOST_DEVICE inline T& operator*=(T& a, const T& b) { return a = a * b; }                   \
  C10_HOST_DEVICE inline T& operator/=(T& a, const T& b) { return a = a / b; }                   \
  KMOSAIC_TORCH_MIXED(T, float, float)                                                           \
  KMOSAIC_TORCH_MIXED(T, double, double)                                                         \
  KMOSAIC_TORCH_MIXED(T, int, T)                                                                 \
  KMOSAIC_TORCH_MIXED(T, int64_t, T)                                                             \
  C10_HOST_DEVICE inline float& operator+=(float& a, const T& b) {                               \
    return a += static_cast<float>(b);                                                           \
  }                                                                                              \
  C10_HOST_DEVICE inline float& operator-=(float& a, const T& b) {                               \
    return a -= static_cast<float>(b);                                                           \
  }                                                                                              \
  C10_HOST_DEVICE inline float& operator*=(float& a, const T& b) {                               \
    return a *= static_cast<float>(b);                                                           \
  }                                                                                              \
  C10_HOST_DEVICE inline float& operator/=(float& a, const T& b) {                               \
    return a /= static_cast<float>(b);                                                           \
  }
#define KMOSAIC_TORCH_MIXED(T, other, result)                                                    \
  C10_HOST_DEVICE inline result operator+(T a, other b) {                                        \
    return static_cast<result>(a) + static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator-(T a, other b) {                                        \
    return static_cast<result>(a) - static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator*(T a, other b) {                                        \
    return static_cast<result>(a) * static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator/(T a, other b) {                                        \
    return static_cast<result>(a) / static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator+(other a, T b) {                                        \
    return static_cast<result>(a) + static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator-(other a, T b) {                                        \
    return static_cast<result>(a) - static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator*(other a, T b) {                                        \
    return static_cast<result>(a) * static_cast<result>(b);                                      \
  }                                                                                              \
  C10_HOST_DEVICE inline result operator/(other a, T b) {                                        \
    return static_cast<result>(a) / static_cast<result>(b);                                      \
  }
KMOSAIC_TORCH_ARITHMETIC(Half)
KMOSAIC_TORCH_ARITHMETIC(BFloat16)
#undef KMOSAIC_TORCH_ARITHMETIC
#undef KMOSAIC_TORCH_MIXED

inline std::ostream& operator<<(std::ostream& out, const Half& value) {
  return out << static_cast<float>(value);
}
inline std::ostream& operator<<(std::ostream& out, const BFloat16& value) {
  return out << static_cast<float>(value);
}

template <class T>
struct CppTypeToScalarType;
#define KMOSAIC_TORCH_TYPE(type, name) \
  template <>                          \
  struct CppTypeToScalarType<type> : std::integral_constant<ScalarType, ScalarType::name> {};
KMOSAIC_TORCH_TYPE(uint8_t, Byte)
KMOSAIC_TORCH_TYPE(int8_t, Char)
KMOSAIC_TORCH_TYPE(int16_t, Short)
KMOSAIC_TORCH_TYPE(int, Int)
KMOSAIC_TORCH_TYPE(int64_t, Long)
KMOSAIC_TORCH_TYPE(Half, Half)
KMOSAIC_TORCH_TYPE(float, Float)
KMOSAIC_TORCH_TYPE(double, Double)
KMOSAIC_TORCH_TYPE(bool, Bool)
KMOSAIC_TORCH_TYPE(BFloat16, BFloat16)
KMOSAIC_TORCH_TYPE(uint16_t, UInt16)
KMOSAIC_TORCH_TYPE(uint32_t, UInt32)
KMOSAIC_TORCH_TYPE(uint64_t, UInt64)
#undef KMOSAIC_TORCH_TYPE

}  // namespace c10

namespace std {
template <>
class numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false,
                        has_infinity = true, has_quiet_NaN = true;
  static constexpr c10::Half lowest() { return {0xfbff, c10::Half::from_bits()}; }
  static constexpr c10::Half max() { return {0x7bff, c10::Half::from_bits()}; }
  static constexpr c10::Half min() { return {0x0400, c10::Half::from_bits()}; }
  static constexpr c10::Half epsilon() { return {0x1400, c10::Half::from_bits()}; }
  static constexpr c10::Half infinity() { return {0x7c00, c10::Half::from_bits()}; }
  static constexpr c10::Half quiet_NaN() { return {0x7e00, c10::Half::from_bits()}; }
};
template <>
class numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false,
                        has_infinity = true, has_quiet_NaN = true;
  static constexpr c10::BFloat16 lowest() { return {0xff7f, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 max() { return {0x7f7f, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 min() { return {0x0080, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 epsilon() { return {0x3c00, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 infinity() { return {0x7f80, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 quiet_NaN() { return {0x7fc0, c10::BFloat16::from_bits()}; }
};
}  // namespace std

namespace at {
// The type to add values of T in.
template <class T, bool is_cuda>
struct AccumulateType {
  using type = std::conditional_t<
      std::is_same<T, c10::Half>::value || std::is_same<T, c10::BFloat16>::value, float,
      std::conditional_t<std::is_same<T, float>::value && !is_cuda, double,
                         std::conditional_t<std::is_integral<T>::value, int64_t, T>>>;
};
template <class T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;
template <class T>
struct OpMathType {
  using type = std::conditional_t<std::is_same<T, c10::Half>::value ||
                                      std::is_same<T, c10::BFloat16>::value,
                                  float, T>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;
}  // namespace at

#endif  // KMOSAIC_TORCH_HALF_H_
