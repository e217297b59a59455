// Tensors and values for tests.
#ifndef KMOSAIC_TESTS_UNIT_EVALUATE_TENSORS_H_
#define KMOSAIC_TESTS_UNIT_EVALUATE_TENSORS_H_

#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu_worker/evaluate/value.h"

namespace kmosaic::testing {

// Bits of `value` in IEEE half precision, by its defining property: the nearest of the
// finite numbers, found through RoundTo.
inline uint16_t HalfBits(double value) {
  double rounded = RoundTo(DType::kFloat16, value);
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(rounded)) return 0x7E00;
  double magnitude = std::abs(rounded);
  uint16_t low = 0;
  uint16_t high = 0x7C00;  // infinity; the bits of positive halves are in order
  while (low < high) {
    uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    if (HalfToDouble(middle) < magnitude) {
      low = static_cast<uint16_t>(middle + 1);
    } else {
      high = middle;
    }
  }
  return static_cast<uint16_t>(sign | low);
}

inline void Append(DType dtype, double value, std::string* bytes) {
  auto put = [&](auto typed) {
    bytes->append(reinterpret_cast<const char*>(&typed), sizeof typed);
  };
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return put(value);
    case DType::kFloat32:
    case DType::kComplex64:
      return put(static_cast<float>(value));
    case DType::kFloat16:
      return put(HalfBits(value));
    case DType::kBFloat16:
      return put(static_cast<uint16_t>(
          std::bit_cast<uint32_t>(static_cast<float>(RoundTo(DType::kBFloat16, value))) >> 16));
    case DType::kInt64:
      return put(static_cast<int64_t>(value));
    case DType::kInt32:
      return put(static_cast<int32_t>(value));
    case DType::kInt16:
      return put(static_cast<int16_t>(value));
    case DType::kInt8:
      return put(static_cast<int8_t>(value));
    case DType::kUInt8:
    case DType::kBool:
      return put(static_cast<uint8_t>(value));
  }
}

inline Value TensorOf(DType dtype, std::vector<int64_t> shape, const std::vector<double>& numbers,
                      std::string device = "") {
  auto block = std::make_shared<std::string>();
  for (double number : numbers) Append(dtype, number, block.get());
  Value value;
  value.kind = Value::Kind::kTensor;
  value.tensor.dtype = dtype;
  value.tensor.dtype_name = DTypeName(dtype);
  value.tensor.shape = std::move(shape);
  value.tensor.elements = 1;
  for (int64_t size : value.tensor.shape) value.tensor.elements *= size;
  value.tensor.device = std::move(device);
  value.tensor.size_bytes = block->size();
  value.tensor.block = std::move(block);
  return value;
}

inline Value TupleOf(std::vector<Value> items) {
  Value value;
  value.kind = Value::Kind::kTuple;
  value.items = std::move(items);
  return value;
}

inline std::vector<double> Normal(size_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(count);
  for (double& number : numbers) number = static_cast<float>(normal(generator));
  return numbers;
}

}  // namespace kmosaic::testing

#endif  // KMOSAIC_TESTS_UNIT_EVALUATE_TENSORS_H_
