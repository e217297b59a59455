#include "gpu_worker/evaluate/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kmosaic {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  size_t bytes;
};

constexpr std::array<Entry, 12> kEntries = {{
    {DType::kFloat64, "float64", 8},
    {DType::kFloat32, "float32", 4},
    {DType::kFloat16, "float16", 2},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kInt64, "int64", 8},
    {DType::kInt32, "int32", 4},
    {DType::kInt16, "int16", 2},
    {DType::kInt8, "int8", 1},
    {DType::kUInt8, "uint8", 1},
    {DType::kBool, "bool", 1},
    {DType::kComplex64, "complex64", 8},
    {DType::kComplex128, "complex128", 16},
}};

const Entry& Find(DType dtype) { return kEntries[static_cast<size_t>(dtype)]; }

template <typename T>
T Load(const char* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// Rounds to a binary format of `mantissa` explicit bits whose smallest normal number is
// 2^min_exponent and whose largest finite one is `largest`.
double RoundBinary(double value, int mantissa, int min_exponent, double largest) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = std::max(std::ilogb(value), min_exponent);
  // nearbyint rounds to nearest even in the default rounding mode.
  double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, mantissa - exponent)), exponent - mantissa);
  if (std::abs(rounded) > largest) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

}  // namespace

std::optional<DType> ParseDType(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

std::string DTypeName(DType dtype) { return std::string(Find(dtype).name); }

size_t ItemSize(DType dtype) { return Find(dtype).bytes; }

bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

bool IsFloating(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kComplex64:
    case DType::kComplex128:
      return true;
    default:
      return false;
  }
}

size_t Components(DType dtype) { return IsComplex(dtype) ? 2 : 1; }

double Decode(DType dtype, const char* data, size_t index) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return Load<double>(data, index);
    case DType::kFloat32:
    case DType::kComplex64:
      return Load<float>(data, index);
    case DType::kFloat16:
      return HalfToDouble(Load<uint16_t>(data, index));
    case DType::kBFloat16:
      return BFloat16ToDouble(Load<uint16_t>(data, index));
    case DType::kInt64:
      return static_cast<double>(Load<int64_t>(data, index));
    case DType::kInt32:
      return Load<int32_t>(data, index);
    case DType::kInt16:
      return Load<int16_t>(data, index);
    case DType::kInt8:
      return Load<int8_t>(data, index);
    case DType::kUInt8:
    case DType::kBool:
      return Load<uint8_t>(data, index);
  }
  return 0;
}

void DecodeRange(DType dtype, const char* data, size_t first, size_t count, double* numbers) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      std::memcpy(numbers, data + first * sizeof(double), count * sizeof(double));
      return;
    case DType::kFloat32:
    case DType::kComplex64:
      for (size_t i = 0; i < count; ++i) numbers[i] = Load<float>(data, first + i);
      return;
    case DType::kFloat16:
      for (size_t i = 0; i < count; ++i) numbers[i] = HalfToDouble(Load<uint16_t>(data, first + i));
      return;
    case DType::kBFloat16:
      for (size_t i = 0; i < count; ++i) {
        numbers[i] = BFloat16ToDouble(Load<uint16_t>(data, first + i));
      }
      return;
    default:
      for (size_t i = 0; i < count; ++i) numbers[i] = Decode(dtype, data, first + i);
  }
}

bool AllFinite(const double* numbers, size_t count) {
  // x - x is NaN for what is not finite, and NaN stays in a sum.
  double seen = 0;
  for (size_t i = 0; i < count; ++i) seen += numbers[i] - numbers[i];
  return seen == 0;
}

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return static_cast<double>(static_cast<float>(value));
    case DType::kFloat16:
      return RoundBinary(value, 10, -14, 65504.0);
    case DType::kBFloat16:
      return RoundBinary(value, 7, -126, 0x1.FEp127);
    default:
      return value;
  }
}

double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return 0x1p-53;
    case DType::kFloat32:
    case DType::kComplex64:
      return 0x1p-24;
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    default:
      return 0;
  }
}

double HalfToDouble(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t rest = bits & 0x7FFF;
  if (rest >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (rest & 0x3FF) << 13);
  // Exponents are 112 apart; the product makes subnormal numbers normal ones.
  return std::bit_cast<float>(sign | rest << 13) * 0x1p112F;
}

double BFloat16ToDouble(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace kmosaic
