// Element types of tensors: torch's names, sizes, and decoding to double.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_DTYPE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmosaic {

enum class DType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex64,
  kComplex128,
};

// "float32" and so on: torch's name without "torch.". Nothing for a type that is not
// compared here (quantised and 8-bit floating types).
std::optional<DType> ParseDType(std::string_view name);
std::string DTypeName(DType dtype);

// Bytes of one element.
size_t ItemSize(DType dtype);

// Complex counts as floating: its two parts are compared as floating numbers.
bool IsFloating(DType dtype);
bool IsComplex(DType dtype);

// Real numbers that one element holds: 2 for complex, else 1.
size_t Components(DType dtype);

// The `index`-th real number (component, for complex) of a C-contiguous array.
// Integers beyond 2^53 lose their last bits; integers are compared by bytes.
double Decode(DType dtype, const char* data, size_t index);

// The `count` real numbers from the `first` on; as Decode gives each of them.
void DecodeRange(DType dtype, const char* data, size_t first, size_t count, double* numbers);

// Whether none of them is an infinity or NaN.
bool AllFinite(const double* numbers, size_t count);

// `value` rounded to nearest-even in a floating `dtype`, as a double (overflow gives
// infinity). Other types return it as it is.
double RoundTo(DType dtype, double value);

// Unit roundoff: half the distance from 1 to the next number (2^-24 for float32).
// Complex types give their component's. 0 for types that are not floating.
double UnitRoundoff(DType dtype);

double HalfToDouble(uint16_t bits);
double BFloat16ToDouble(uint16_t bits);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_DTYPE_H_
