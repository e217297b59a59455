// Device and scalar types, errors and checks of c10.
#ifndef KMOSAIC_TORCH_BASE_H_
#define KMOSAIC_TORCH_BASE_H_

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kmosaic_torch/abi.h"

#if defined(__CUDACC__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_LIKELY(e) (__builtin_expect(static_cast<bool>(e), 1))
#define C10_UNLIKELY(e) (__builtin_expect(static_cast<bool>(e), 0))
#define C10_RESTRICT __restrict
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__(a)
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__(a, b)
#define C10_WARP_SIZE 32
// One copy per extension.
#define KMOSAIC_TORCH_VARIABLE inline __attribute__((visibility("hidden")))

namespace c10 {

// Numbers as in PyTorch (c10/core/ScalarType.h).
enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  BFloat16 = 15,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Undefined = 45,
};

constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char,
                     kShort = ScalarType::Short, kInt = ScalarType::Int,
                     kLong = ScalarType::Long, kHalf = ScalarType::Half,
                     kFloat = ScalarType::Float, kDouble = ScalarType::Double,
                     kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt,
                     kInt64 = kLong, kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;

inline const char* toString(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
      return "Byte";
    case ScalarType::Char:
      return "Char";
    case ScalarType::Short:
      return "Short";
    case ScalarType::Int:
      return "Int";
    case ScalarType::Long:
      return "Long";
    case ScalarType::Half:
      return "Half";
    case ScalarType::Float:
      return "Float";
    case ScalarType::Double:
      return "Double";
    case ScalarType::ComplexHalf:
      return "ComplexHalf";
    case ScalarType::ComplexFloat:
      return "ComplexFloat";
    case ScalarType::ComplexDouble:
      return "ComplexDouble";
    case ScalarType::Bool:
      return "Bool";
    case ScalarType::BFloat16:
      return "BFloat16";
    case ScalarType::Float8_e5m2:
      return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn:
      return "Float8_e4m3fn";
    case ScalarType::UInt16:
      return "UInt16";
    case ScalarType::UInt32:
      return "UInt32";
    case ScalarType::UInt64:
      return "UInt64";
    default:
      return "Undefined";
  }
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) {
  return out << toString(type);
}
inline size_t elementSize(ScalarType type) {
  switch (type) {
    case ScalarType::Short:
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::UInt16:
      return 2;
    case ScalarType::Int:
    case ScalarType::Float:
    case ScalarType::ComplexHalf:
    case ScalarType::UInt32:
      return 4;
    case ScalarType::Long:
    case ScalarType::Double:
    case ScalarType::ComplexFloat:
    case ScalarType::UInt64:
      return 8;
    case ScalarType::ComplexDouble:
      return 16;
    default:
      return 1;
  }
}
inline bool isFloatingType(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double ||
         type == ScalarType::BFloat16;
}
inline bool isIntegralType(ScalarType type, bool include_bool = false) {
  return (type >= ScalarType::Byte && type <= ScalarType::Long) ||
         (include_bool && type == ScalarType::Bool);
}

enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 9 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;
inline std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << (type == DeviceType::CUDA ? "cuda" : type == DeviceType::CPU ? "cpu" : "meta");
}

enum class Layout : int8_t { Strided = 0, Sparse = 1 };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };

// ---- errors
class Error : public std::exception {
 public:
  explicit Error(std::string text, int32_t status = KM_RUNTIME_ERROR)
      : text_(std::move(text)), status_(status) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const char* what_without_backtrace() const noexcept { return text_.c_str(); }
  std::string msg() const { return text_; }
  int32_t status() const { return status_; }

 private:
  std::string text_;
  int32_t status_;
};
struct ValueError : Error {
  explicit ValueError(std::string text) : Error(std::move(text), KM_VALUE_ERROR) {}
};
struct IndexError : Error {
  explicit IndexError(std::string text) : Error(std::move(text), KM_INDEX_ERROR) {}
};
struct TypeError : Error {
  explicit TypeError(std::string text) : Error(std::move(text), KM_TYPE_ERROR) {}
};
struct NotImplementedError : Error {
  explicit NotImplementedError(std::string text) : Error(std::move(text), KM_NOT_IMPLEMENTED) {}
};

template <class... Parts>
inline std::string str(const Parts&... parts) {
  std::ostringstream out;
  (void)(out << ... << parts);
  return out.str();
}

namespace detail {
template <class... Parts>
inline std::string CheckText(const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(Parts) == 0) {
    return str("Expected ", condition,
               " to be true, but got false.  (Could this error message be improved?  If so, "
               "please report an enhancement request to PyTorch.)");
  } else {
    (void)condition;
    return str(parts...);
  }
}
}  // namespace detail

// ---- devices
struct Device {
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    if (kind == "cuda") {
      type_ = DeviceType::CUDA;
    } else if (kind == "cpu") {
      type_ = DeviceType::CPU;
    } else {
      throw Error("Invalid device string: '" + text + "'");
    }
    if (colon != std::string::npos) {
      index_ = static_cast<DeviceIndex>(atoi(text.c_str() + colon + 1));
    }
  }
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool operator==(const Device& other) const {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const { return !(*this == other); }
  std::string str() const {
    std::ostringstream out;
    out << type_;
    if (has_index()) out << ':' << static_cast<int>(index_);
    return out.str();
  }

 private:
  DeviceType type_ = DeviceType::CPU;
  DeviceIndex index_ = -1;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << device.str();
}

// ---- views of arrays
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}
  template <size_t N>
  ArrayRef(const std::array<T, N>& values) : data_(values.data()), size_(N) {}
  template <size_t N>
  ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // like c10's: good for the full expression
  ArrayRef(const std::initializer_list<T>& values)
      : data_(values.begin()), size_(values.size()) {}
#pragma GCC diagnostic pop

  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    if (i >= size_) throw Error(c10::str("ArrayRef: invalid index Index = ", i, "; Length = ", size_));
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t from, size_t count) const { return ArrayRef(data_ + from, count); }
  ArrayRef slice(size_t from) const { return ArrayRef(data_ + from, size_ - from); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef other) const {
    return size_ == other.size_ && std::equal(begin(), end(), other.begin());
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
template <class T>
inline std::ostream& operator<<(std::ostream& out, ArrayRef<T> values) {
  out << '[';
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << values[i];
  return out << ']';
}
using IntArrayRef = ArrayRef<int64_t>;

template <class T>
using optional = std::optional<T>;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using string_view = std::string_view;

// ---- numbers of unknown type
class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Scalar(T value) {
    if constexpr (std::is_same<T, bool>::value) {
      kind_ = KM_BOOL;
      integer_ = value ? 1 : 0;
    } else if constexpr (std::is_integral<T>::value) {
      kind_ = KM_INT;
      integer_ = static_cast<int64_t>(value);
    } else {
      kind_ = KM_FLOAT;
      real_ = static_cast<double>(value);
    }
  }
  template <class T>
  T to() const {
    return kind_ == KM_FLOAT ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int toInt() const { return to<int>(); }
  int64_t toLong() const { return to<int64_t>(); }
  bool toBool() const { return kind_ == KM_FLOAT ? real_ != 0 : integer_ != 0; }
  bool isFloatingPoint() const { return kind_ == KM_FLOAT; }
  bool isIntegral(bool include_bool) const {
    return kind_ == KM_INT || (include_bool && kind_ == KM_BOOL);
  }
  bool isBoolean() const { return kind_ == KM_BOOL; }
  int32_t kind() const { return kind_; }

 private:
  int32_t kind_ = KM_INT;
  int64_t integer_ = 0;
  double real_ = 0;
};

}  // namespace c10

#define TORCH_CHECK(condition, ...)                                                            \
  do {                                                                                         \
    if (!(condition)) throw ::c10::Error(::c10::detail::CheckText(#condition, ##__VA_ARGS__)); \
  } while (0)
#define TORCH_CHECK_VALUE(condition, ...)                                               \
  do {                                                                                  \
    if (!(condition))                                                                   \
      throw ::c10::ValueError(::c10::detail::CheckText(#condition, ##__VA_ARGS__));     \
  } while (0)
#define TORCH_CHECK_INDEX(condition, ...)                                               \
  do {                                                                                  \
    if (!(condition))                                                                   \
      throw ::c10::IndexError(::c10::detail::CheckText(#condition, ##__VA_ARGS__));     \
  } while (0)
#define TORCH_CHECK_TYPE(condition, ...)                                                \
  do {                                                                                  \
    if (!(condition))                                                                   \
      throw ::c10::TypeError(::c10::detail::CheckText(#condition, ##__VA_ARGS__));      \
  } while (0)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...)                                            \
  do {                                                                                         \
    if (!(condition))                                                                          \
      throw ::c10::NotImplementedError(::c10::detail::CheckText(#condition, ##__VA_ARGS__));   \
  } while (0)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b))
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) static_cast<void>(0)
#define AT_ASSERT(condition) TORCH_CHECK(condition)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_CHECK(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ERROR(...) throw ::c10::Error(::c10::str(__VA_ARGS__))
#define C10_THROW_ERROR(kind, text) throw ::c10::kind(text)
#define TORCH_WARN(...) (::std::cerr << "Warning: " << ::c10::str(__VA_ARGS__) << "\n")
#define TORCH_WARN_ONCE(...)                                        \
  do {                                                              \
    static const bool warned = (TORCH_WARN(__VA_ARGS__), true);     \
    (void)warned;                                                   \
  } while (0)

#endif  // KMOSAIC_TORCH_BASE_H_
