// Functions of at and torch: factories, operators, and operations that are passed on.
#ifndef KMOSAIC_TORCH_FUNCTIONS_H_
#define KMOSAIC_TORCH_FUNCTIONS_H_

#include "kmosaic_torch/tensor.h"

namespace at {

// ---- factories
inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {},
                    std::optional<MemoryFormat> format = std::nullopt) {
  return detail::Run<Tensor>("empty", sizes, format ? options.memory_format(*format) : options);
}
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides,
                            const TensorOptions& options = {}) {
  return detail::Run<Tensor>("empty_strided", sizes, strides, options);
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("zeros", sizes, options);
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("ones", sizes, options);
}
inline Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("full", sizes, value, options);
}
inline Tensor rand(IntArrayRef sizes, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("rand", sizes, options);
}
inline Tensor randn(IntArrayRef sizes, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("randn", sizes, options);
}
inline Tensor randint(int64_t high, IntArrayRef sizes, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("randint", high, sizes, options);
}
inline Tensor randint(int64_t low, int64_t high, IntArrayRef sizes,
                      const TensorOptions& options = {}) {
  return detail::Run<Tensor>("randint", low, high, sizes, options);
}
inline Tensor arange(const Scalar& end, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("arange", end, options);
}
inline Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("arange", start, end, options);
}
inline Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
                     const TensorOptions& options = {}) {
  return detail::Run<Tensor>("arange", start, end, step, options);
}
inline Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                       const TensorOptions& options = {}) {
  return detail::Run<Tensor>("linspace", start, end, steps, options);
}
inline Tensor eye(int64_t n, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("eye", n, options);
}
inline Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("scalar_tensor", value, options);
}
#define KMOSAIC_TORCH_LIKE(name)                                                         \
  inline Tensor name(const Tensor& like, const TensorOptions& options = {},              \
                     std::optional<MemoryFormat> format = std::nullopt) {                \
    return detail::Run<Tensor>(#name, like,                                              \
                               format ? options.memory_format(*format) : options);       \
  }                                                                                      \
  inline Tensor name(const Tensor& like, MemoryFormat format) {                          \
    return name(like, TensorOptions(), format);                                          \
  }
KMOSAIC_TORCH_LIKE(empty_like)
KMOSAIC_TORCH_LIKE(zeros_like)
KMOSAIC_TORCH_LIKE(ones_like)
KMOSAIC_TORCH_LIKE(rand_like)
KMOSAIC_TORCH_LIKE(randn_like)
#undef KMOSAIC_TORCH_LIKE
inline Tensor full_like(const Tensor& like, const Scalar& value,
                        const TensorOptions& options = {}) {
  return detail::Run<Tensor>("full_like", like, value, options);
}
// torch::tensor(value or list).
inline Tensor tensor(const Scalar& value, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("tensor", value, options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
inline Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("tensor", std::vector<T>(values), options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
inline Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("tensor", values, options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
inline Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return detail::Run<Tensor>("tensor", values, options);
}

// ---- lists of tensors
inline Tensor cat(TensorList tensors, int64_t dim = 0) {
  return detail::Run<Tensor>("cat", tensors, dim);
}
inline Tensor concat(TensorList tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor stack(TensorList tensors, int64_t dim = 0) {
  return detail::Run<Tensor>("stack", tensors, dim);
}
inline Tensor einsum(std::string_view equation, TensorList tensors) {
  return detail::Run<Tensor>("einsum", equation, tensors);
}
inline std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  return detail::Run<std::vector<Tensor>>("broadcast_tensors", tensors);
}

// ---- operations
#define KMOSAIC_TORCH_FUNCTION(name)                                                  \
  template <class... A>                                                               \
  inline Tensor name(const Tensor& self, const A&... arguments) {                     \
    return detail::Run<Tensor>(#name, self, arguments...);                            \
  }                                                                                   \
  template <class... A>                                                               \
  inline Tensor name(const Tensor& self, IntArrayRef list, const A&... arguments) {   \
    return detail::Run<Tensor>(#name, self, list, arguments...);                      \
  }
KMOSAIC_TORCH_FUNCTIONS(KMOSAIC_TORCH_FUNCTION)
#undef KMOSAIC_TORCH_FUNCTION
#define KMOSAIC_TORCH_FUNCTION(name)                                                  \
  template <class... A>                                                               \
  inline std::vector<Tensor> name(const Tensor& self, const A&... arguments) {        \
    return self.name(arguments...);                                                   \
  }
KMOSAIC_TORCH_LIST_METHODS(KMOSAIC_TORCH_FUNCTION)
#undef KMOSAIC_TORCH_FUNCTION
#define KMOSAIC_TORCH_FUNCTION(name)                                                           \
  inline Tensor name(const Tensor& self) { return self.name(); }                               \
  inline Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); }     \
  inline std::tuple<Tensor, Tensor> name(const Tensor& self, int64_t dim,                      \
                                         bool keepdim = false) {                               \
    return self.name(dim, keepdim);                                                            \
  }
KMOSAIC_TORCH_EXTREMUM_METHODS(KMOSAIC_TORCH_FUNCTION)
#undef KMOSAIC_TORCH_FUNCTION
#define KMOSAIC_TORCH_FUNCTION(name)                                                        \
  template <class... A>                                                                     \
  inline std::tuple<Tensor, Tensor> name(const Tensor& self, const A&... arguments) {       \
    return self.name(arguments...);                                                         \
  }
KMOSAIC_TORCH_PAIR_METHODS(KMOSAIC_TORCH_FUNCTION)
#undef KMOSAIC_TORCH_FUNCTION
// Those with more than one list among their arguments.
#define KMOSAIC_TORCH_CONVOLUTION(dimensions)                                                  \
  inline Tensor conv##dimensions##d(const Tensor& input, const Tensor& weight,                 \
                                    const std::optional<Tensor>& bias = std::nullopt,          \
                                    IntArrayRef stride = 1, IntArrayRef padding = 0,           \
                                    IntArrayRef dilation = 1, int64_t groups = 1) {            \
    return detail::Run<Tensor>("conv" #dimensions "d", input, weight, bias, stride, padding,   \
                               dilation, groups);                                              \
  }                                                                                            \
  inline Tensor conv_transpose##dimensions##d(                                                 \
      const Tensor& input, const Tensor& weight,                                               \
      const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,                \
      IntArrayRef padding = 0, IntArrayRef output_padding = 0, int64_t groups = 1,             \
      IntArrayRef dilation = 1) {                                                              \
    return detail::Run<Tensor>("conv_transpose" #dimensions "d", input, weight, bias, stride,  \
                               padding, output_padding, groups, dilation);                     \
  }                                                                                            \
  inline Tensor max_pool##dimensions##d(const Tensor& self, IntArrayRef kernel,                \
                                        IntArrayRef stride = {}, IntArrayRef padding = 0,      \
                                        IntArrayRef dilation = 1, bool ceil_mode = false) {    \
    return detail::Run<Tensor>("max_pool" #dimensions "d", self, kernel, stride, padding,      \
                               dilation, ceil_mode);                                           \
  }                                                                                            \
  inline Tensor avg_pool##dimensions##d(const Tensor& self, IntArrayRef kernel,                \
                                        IntArrayRef stride = {}, IntArrayRef padding = 0,      \
                                        bool ceil_mode = false,                                \
                                        bool count_include_pad = true) {                       \
    return detail::Run<Tensor>("avg_pool" #dimensions "d", self, kernel, stride, padding,      \
                               ceil_mode, count_include_pad);                                  \
  }
KMOSAIC_TORCH_CONVOLUTION(1)
KMOSAIC_TORCH_CONVOLUTION(2)
KMOSAIC_TORCH_CONVOLUTION(3)
#undef KMOSAIC_TORCH_CONVOLUTION
inline Tensor log_sigmoid(const Tensor& self) { return detail::Run<Tensor>("log_sigmoid", self); }
inline bool equal(const Tensor& self, const Tensor& other) { return self.equal(other); }
inline bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5,
                     double atol = 1e-8) {
  return self.allclose(other, rtol, atol);
}
template <class... A>
inline std::tuple<Tensor, Tensor> var_mean(const Tensor& self, const A&... arguments) {
  return detail::Run<std::tuple<Tensor, Tensor>>("var_mean", self, arguments...);
}

#define KMOSAIC_TORCH_OPERATOR(symbol, name)                                 \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) {          \
    return detail::Run<Tensor>(#name, a, b);                                 \
  }                                                                          \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) {          \
    return detail::Run<Tensor>(#name, a, b);                                 \
  }
KMOSAIC_TORCH_OPERATOR(+, add)
KMOSAIC_TORCH_OPERATOR(-, sub)
KMOSAIC_TORCH_OPERATOR(*, mul)
KMOSAIC_TORCH_OPERATOR(/, div)
KMOSAIC_TORCH_OPERATOR(%, remainder)
KMOSAIC_TORCH_OPERATOR(<, lt)
KMOSAIC_TORCH_OPERATOR(<=, le)
KMOSAIC_TORCH_OPERATOR(>, gt)
KMOSAIC_TORCH_OPERATOR(>=, ge)
KMOSAIC_TORCH_OPERATOR(==, eq)
KMOSAIC_TORCH_OPERATOR(!=, ne)
#undef KMOSAIC_TORCH_OPERATOR
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b + a; }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b * a; }
inline Tensor operator-(const Scalar& a, const Tensor& b) {
  return detail::Run<Tensor>("rsub", b, a);
}
inline Tensor operator/(const Scalar& a, const Tensor& b) { return b.reciprocal() * a; }

using c10::kBFloat16;
using c10::kBool;
using c10::kByte;
using c10::kChar;
using c10::kCPU;
using c10::kCUDA;
using c10::kDouble;
using c10::kFloat;
using c10::kFloat16;
using c10::kFloat32;
using c10::kFloat64;
using c10::kHalf;
using c10::kInt;
using c10::kInt16;
using c10::kInt32;
using c10::kInt64;
using c10::kInt8;
using c10::kLong;
using c10::kShort;
using c10::kStrided;
using c10::kUInt8;
using c10::device;
using c10::dtype;
using c10::toString;
using c10::elementSize;
using c10::isFloatingType;
using c10::isIntegralType;

// ---- small mathematics of ATen
template <class T>
inline C10_HOST_DEVICE T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
template <class T>
inline C10_HOST_DEVICE T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}

struct NoGradGuard {
  NoGradGuard() {}
};
struct AutoGradMode {
  explicit AutoGradMode(bool) {}
};

inline std::optional<Device> device_of(const Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}

using c10::nullopt;
using c10::optional;

}  // namespace at

namespace c10 {
using at::device_of;
}

namespace torch {
using namespace at;  // NOLINT: as torch itself does
using at::Tensor;
using at::TensorList;
using c10::ArrayRef;
using c10::Device;
using c10::DeviceType;
using c10::IntArrayRef;
using c10::Layout;
using c10::MemoryFormat;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;
using c10::device;
using c10::dtype;
using c10::layout;
using c10::memory_format;
using c10::nullopt;
using c10::optional;
using c10::requires_grad;
using Dtype = c10::ScalarType;
namespace indexing = at::indexing;
namespace autograd {
using variable_list = std::vector<at::Tensor>;
}
}  // namespace torch

#endif  // KMOSAIC_TORCH_FUNCTIONS_H_
