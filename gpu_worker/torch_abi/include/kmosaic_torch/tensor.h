// at::Tensor over the C interface. Shape, strides, type and address are known here; whatever
// computes is called back into torch.
#ifndef KMOSAIC_TORCH_TENSOR_H_
#define KMOSAIC_TORCH_TENSOR_H_

#include "kmosaic_torch/accessor.h"
#include "kmosaic_torch/operation_names.h"
#include "kmosaic_torch/value.h"

namespace caffe2 {
// What Tensor::dtype() gives: compares with and turns into a ScalarType.
class TypeMeta {
 public:
  TypeMeta(c10::ScalarType type = c10::ScalarType::Undefined) : type_(type) {}
  c10::ScalarType toScalarType() const { return type_; }
  operator c10::ScalarType() const { return type_; }
  size_t itemsize() const { return c10::elementSize(type_); }
  std::string_view name() const { return c10::toString(type_); }
  template <class T>
  bool Match() const {
    return type_ == c10::CppTypeToScalarType<T>::value;
  }
  template <class T>
  static TypeMeta Make() {
    return TypeMeta(c10::CppTypeToScalarType<T>::value);
  }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }
  friend bool operator==(TypeMeta a, c10::ScalarType b) { return a.type_ == b; }
  friend bool operator!=(TypeMeta a, c10::ScalarType b) { return a.type_ != b; }
  friend bool operator==(c10::ScalarType a, TypeMeta b) { return a == b.type_; }
  friend bool operator!=(c10::ScalarType a, TypeMeta b) { return a != b.type_; }
  friend std::ostream& operator<<(std::ostream& out, TypeMeta type) { return out << type.type_; }

 private:
  c10::ScalarType type_;
};
}  // namespace caffe2

namespace c10 {

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(caffe2::TypeMeta type) : dtype_(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}
  TensorOptions(const char* device) : device_(Device(device)) {}
  TensorOptions(Layout) {}
  TensorOptions(MemoryFormat format) : memory_format_(format) {}

  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> type) const {
    TensorOptions options = *this;
    options.dtype_ = type;
    return options;
  }
  [[nodiscard]] TensorOptions dtype(ScalarType type) const {
    return dtype(std::optional<ScalarType>(type));
  }
  [[nodiscard]] TensorOptions dtype(caffe2::TypeMeta type) const {
    return dtype(std::optional<ScalarType>(type.toScalarType()));
  }
  template <class T>
  [[nodiscard]] TensorOptions dtype() const {
    return dtype(std::optional<ScalarType>(CppTypeToScalarType<T>::value));
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> device) const {
    TensorOptions options = *this;
    options.device_ = device;
    return options;
  }
  [[nodiscard]] TensorOptions device(Device device) const {
    return this->device(std::optional<Device>(device));
  }
  [[nodiscard]] TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions device(const char* text) const { return device(Device(text)); }
  [[nodiscard]] TensorOptions device_index(int16_t index) const {
    return device(Device(DeviceType::CUDA, static_cast<DeviceIndex>(index)));
  }
  [[nodiscard]] TensorOptions layout(Layout) const { return *this; }
  [[nodiscard]] TensorOptions requires_grad(bool value = true) const {
    TensorOptions options = *this;
    options.requires_grad_ = value;
    return options;
  }
  [[nodiscard]] TensorOptions pinned_memory(bool) const { return *this; }
  [[nodiscard]] TensorOptions memory_format(MemoryFormat format) const {
    TensorOptions options = *this;
    options.memory_format_ = format;
    return options;
  }

  caffe2::TypeMeta dtype() const { return dtype_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device(DeviceType::CPU)); }
  bool requires_grad() const { return requires_grad_; }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }

  void AppendKeywords(std::vector<kmosaic_torch::Value>* arguments) const {
    const auto append = [&](const char* name, kmosaic_torch::Value value) {
      arguments->push_back(kmosaic_torch::Value::Keyword(name));
      arguments->push_back(std::move(value));
    };
    if (dtype_) append("dtype", *dtype_);
    if (device_) append("device", *device_);
    if (memory_format_) append("memory_format", *memory_format_);
  }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<MemoryFormat> memory_format_;
  bool requires_grad_ = false;
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions(type); }
template <class T>
inline TensorOptions dtype() {
  return TensorOptions(CppTypeToScalarType<T>::value);
}
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions device(DeviceType type, DeviceIndex index = -1) {
  return TensorOptions(Device(type, index));
}
inline TensorOptions requires_grad(bool value = true) {
  return TensorOptions().requires_grad(value);
}
inline TensorOptions layout(Layout) { return TensorOptions(); }
inline TensorOptions memory_format(MemoryFormat format) {
  return TensorOptions().memory_format(format);
}

}  // namespace c10

namespace at {

using c10::ArrayRef;
using c10::BFloat16;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Half;
using c10::IntArrayRef;
using c10::Layout;
using c10::MemoryFormat;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;

namespace indexing {
using c10::nullopt;
struct NoneType {};
constexpr NoneType None{};
struct EllipsisType {};
constexpr EllipsisType Ellipsis{};
struct Slice {
  Slice() = default;
  Slice(std::optional<int64_t> first, std::optional<int64_t> last = std::nullopt,
        std::optional<int64_t> stride = std::nullopt)
      : start(first), stop(last), step(stride) {}
  Slice(NoneType) {}
  Slice(NoneType, std::optional<int64_t> last) : stop(last) {}
  Slice(std::optional<int64_t> first, NoneType) : start(first) {}
  Slice(NoneType, NoneType) {}
  Slice(NoneType, NoneType, std::optional<int64_t> stride) : step(stride) {}
  std::optional<int64_t> start, stop, step;
};
class TensorIndex {
 public:
  TensorIndex(NoneType) {}
  TensorIndex(std::nullopt_t) {}
  TensorIndex(EllipsisType) : value_(kmosaic_torch::Value::OfKind(KM_ELLIPSIS, {})) {}
  TensorIndex(const char*) : value_(kmosaic_torch::Value::OfKind(KM_ELLIPSIS, {})) {}
  TensorIndex(bool value) : value_(value) {}
  TensorIndex(int value) : value_(value) {}
  TensorIndex(int64_t value) : value_(value) {}
  TensorIndex(const Slice& slice)
      : value_(kmosaic_torch::Value::OfKind(KM_SLICE, {slice.start, slice.stop, slice.step})) {}
  TensorIndex(const Tensor& tensor);
  const kmosaic_torch::Value& value() const { return value_; }

 private:
  kmosaic_torch::Value value_;
};
}  // namespace indexing

// Deprecated Tensor::type(): dispatch macros and comparisons are all that is made of it.
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(ScalarType type, DeviceType device) : type_(type), device_(device) {}
  ScalarType scalarType() const { return type_; }
  operator ScalarType() const { return type_; }
  bool is_cuda() const { return device_ == DeviceType::CUDA; }
  std::string toString() const {
    return std::string(is_cuda() ? "CUDA" : "CPU") + c10::toString(type_) + "Type";
  }
  friend bool operator==(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return a.type_ == b.type_ && a.device_ == b.device_;
  }
  friend std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& type) {
    return out << type.toString();
  }

 private:
  ScalarType type_;
  DeviceType device_;
};

class Tensor;
namespace detail {
template <class A>
void Append(std::vector<kmosaic_torch::Value>* arguments, const A& argument) {
  if constexpr (std::is_same<A, TensorOptions>::value) {
    argument.AppendKeywords(arguments);
  } else {
    arguments->emplace_back(argument);
  }
}
template <class... A>
std::vector<kmosaic_torch::Value> Pack(const A&... arguments) {
  std::vector<kmosaic_torch::Value> packed;
  packed.reserve(sizeof...(A));
  (Append(&packed, arguments), ...);
  return packed;
}
template <class R>
R Unpack(const kmosaic_torch::Value& value);
template <class R, class... A>
R Run(const char* name, const A&... arguments) {
  return Unpack<R>(kmosaic_torch::Call(name, Pack(arguments...)));
}
}  // namespace detail

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(kmosaic_torch::TensorPointer impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  void reset() { impl_.reset(); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  const kmosaic_torch::TensorPointer& kmosaic_impl() const { return impl_; }

  // ---- shape and type
  int64_t dim() const { return meta().dimensions; }
  int64_t ndimension() const { return dim(); }
  int64_t size(int64_t dimension) const { return meta().sizes[Wrap(dimension)]; }
  int64_t stride(int64_t dimension) const { return meta().strides[Wrap(dimension)]; }
  IntArrayRef sizes() const { return {meta().sizes, static_cast<size_t>(dim())}; }
  IntArrayRef strides() const { return {meta().strides, static_cast<size_t>(dim())}; }
  int64_t numel() const {
    int64_t count = 1;
    for (const int64_t size : sizes()) count *= size;
    return count;
  }
  ScalarType scalar_type() const { return static_cast<ScalarType>(meta().dtype); }
  caffe2::TypeMeta dtype() const { return scalar_type(); }
  DeprecatedTypeProperties type() const { return {scalar_type(), device().type()}; }
  Device device() const {
    return {static_cast<DeviceType>(meta().device_type),
            static_cast<DeviceIndex>(meta().device_index)};
  }
  Layout layout() const { return c10::kStrided; }
  int64_t get_device() const { return meta().device_index; }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_sparse() const { return false; }
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool requires_grad() const { return meta().requires_grad != 0; }
  size_t element_size() const { return c10::elementSize(scalar_type()); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (numel() == 0) return true;
    const auto dense = [&](std::initializer_list<int64_t> order) {
      int64_t expected = 1;
      for (const int64_t d : order) {
        if (size(d) != 1 && stride(d) != expected) return false;
        expected *= size(d);
      }
      return true;
    };
    if (format == MemoryFormat::ChannelsLast) return dim() == 4 && dense({1, 3, 2, 0});
    if (format == MemoryFormat::ChannelsLast3d) return dim() == 5 && dense({1, 4, 3, 2, 0});
    int64_t expected = 1;
    for (int64_t d = dim(); d-- > 0;) {
      if (size(d) != 1 && stride(d) != expected) return false;
      expected *= size(d);
    }
    return true;
  }
  MemoryFormat suggest_memory_format() const {
    if (dim() == 4 && !is_contiguous() && is_contiguous(MemoryFormat::ChannelsLast)) {
      return MemoryFormat::ChannelsLast;
    }
    return MemoryFormat::Contiguous;
  }

  // ---- data
  void* data_ptr() const { return meta().data; }
  const void* const_data_ptr() const { return meta().data; }
  void* mutable_data_ptr() const { return meta().data; }
  template <class T>
  T* data_ptr() const {
    Expect<T>();
    return static_cast<T*>(meta().data);
  }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return data_ptr<std::remove_const_t<T>>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const {
    ExpectDimensions(N);
    return {data_ptr<T>(), meta().sizes, meta().strides};
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const {
    ExpectDimensions(N);
    return {data_ptr<T>(), meta().sizes, meta().strides};
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    TORCH_CHECK(numel() <= std::numeric_limits<int32_t>::max(),
                "numel needs to be smaller than int32_t max; otherwise, please use "
                "packed_accessor64");
    return generic_packed_accessor<T, N, Traits, int32_t>();
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    return generic_packed_accessor<T, N, Traits, int64_t>();
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() const {
    return generic_packed_accessor<T, N, Traits, Index>();
  }
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }

  // ---- operations that need no call when there is nothing to do
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (is_contiguous(format)) return *this;
    return Method("contiguous", kmosaic_torch::Value::Keyword("memory_format"), format);
  }
  Tensor to(ScalarType type) const {
    return type == scalar_type() ? *this : Method(".to", type);
  }
  Tensor to(caffe2::TypeMeta type) const { return to(type.toScalarType()); }
  Tensor to(Device device) const { return Method(".to", device); }
  Tensor to(DeviceType device) const { return to(Device(device)); }
  Tensor to(Device device, ScalarType type) const { return Method(".to", device, type); }
  Tensor to(const TensorOptions& options) const { return Method(".to", options); }
  Tensor to(const Tensor& other) const { return Method(".to", other); }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor cuda() const { return is_cuda() ? *this : Method(".cuda"); }
  Tensor cpu() const { return is_cpu() ? *this : Method(".cpu"); }
  Tensor variable_data() const { return detach(); }
  Tensor detach() const { return Method("detach"); }
  Tensor tensor_data() const { return detach(); }
  const Tensor& set_requires_grad(bool) const { return *this; }

  // ---- indexing
  Tensor operator[](int64_t index) const { return Method("select", 0, index); }
  Tensor operator[](const Tensor& index) const { return this->index({index}); }
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const {
    return Method(".__getitem__", Indices(indices));
  }
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value) {
    detail::Run<kmosaic_torch::Value>(".__setitem__", *this, Indices(indices), value);
    return *this;
  }
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) {
    detail::Run<kmosaic_torch::Value>(".__setitem__", *this, Indices(indices), value);
    return *this;
  }

  // ---- arithmetic
  Tensor operator-() const { return Method("neg"); }
  Tensor& operator+=(const Tensor& other) { return InPlace("add_", other); }
  Tensor& operator+=(const Scalar& other) { return InPlace("add_", other); }
  Tensor& operator-=(const Tensor& other) { return InPlace("sub_", other); }
  Tensor& operator-=(const Scalar& other) { return InPlace("sub_", other); }
  Tensor& operator*=(const Tensor& other) { return InPlace("mul_", other); }
  Tensor& operator*=(const Scalar& other) { return InPlace("mul_", other); }
  Tensor& operator/=(const Tensor& other) { return InPlace("div_", other); }
  Tensor& operator/=(const Scalar& other) { return InPlace("div_", other); }

  // ---- everything else that gives one tensor: a call with ATen's order of arguments. A braced
  // list can only be the first argument.
#define KMOSAIC_TORCH_METHOD(name)                                   \
  template <class... A>                                              \
  Tensor name(const A&... arguments) const {                         \
    return Method(#name, arguments...);                              \
  }                                                                  \
  template <class... A>                                              \
  Tensor name(IntArrayRef list, const A&... arguments) const {       \
    return Method(#name, list, arguments...);                        \
  }
  KMOSAIC_TORCH_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
#define KMOSAIC_TORCH_METHOD(name)                       \
  template <class... A>                                  \
  const Tensor& name(const A&... arguments) const {      \
    Method(#name, arguments...);                         \
    return *this;                                        \
  }                                                      \
  template <class... A>                                  \
  Tensor& name(const A&... arguments) {                  \
    Method(#name, arguments...);                         \
    return *this;                                        \
  }
  KMOSAIC_TORCH_IN_PLACE_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
#define KMOSAIC_TORCH_METHOD(name)                          \
  template <class... A>                                     \
  std::vector<Tensor> name(const A&... arguments) const;    \
  template <class... A>                                     \
  std::vector<Tensor> name(IntArrayRef list, const A&... arguments) const;
  KMOSAIC_TORCH_LIST_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
  // With a dimension these give values and indices.
#define KMOSAIC_TORCH_METHOD(name)                                                  \
  Tensor name() const { return Method(#name); }                                     \
  Tensor name(const Tensor& other) const { return Method(#name, other); }           \
  std::tuple<Tensor, Tensor> name(int64_t dim, bool keepdim = false) const;
  KMOSAIC_TORCH_EXTREMUM_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
#define KMOSAIC_TORCH_METHOD(name) \
  template <class... A>            \
  std::tuple<Tensor, Tensor> name(const A&... arguments) const;
  KMOSAIC_TORCH_PAIR_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
  bool equal(const Tensor& other) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8) const;

 private:
  const KmTensor& meta() const {
    if (impl_ == nullptr) {
      throw c10::Error("a property of an undefined tensor (None in Python) is asked for");
    }
    return impl_->meta;
  }
  int64_t Wrap(int64_t dimension) const {
    const int64_t count = dim();
    if (dimension < -count || dimension >= count) {
      throw c10::IndexError(c10::str("Dimension out of range (expected to be in range of [",
                                     -std::max<int64_t>(count, 1), ", ",
                                     std::max<int64_t>(count, 1) - 1, "], but got ", dimension,
                                     ")"));
    }
    return dimension < 0 ? dimension + count : dimension;
  }
  template <class T>
  void Expect() const {
    constexpr ScalarType wanted = c10::CppTypeToScalarType<std::remove_const_t<T>>::value;
    TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", wanted, " but found ",
                scalar_type());
  }
  void ExpectDimensions(size_t count) const {
    TORCH_CHECK(dim() == static_cast<int64_t>(count), "TensorAccessor expected ", count,
                " dims but tensor has ", dim());
  }
  static kmosaic_torch::Value Indices(std::initializer_list<indexing::TensorIndex> indices) {
    std::vector<kmosaic_torch::Value> items;
    for (const auto& index : indices) items.push_back(index.value());
    return kmosaic_torch::Value::OfKind(KM_TUPLE, std::move(items));
  }
  template <class... A>
  Tensor Method(const char* name, const A&... arguments) const {
    return Tensor(kmosaic_torch::Call(name, detail::Pack(*this, arguments...)).tensor());
  }
  template <class A>
  Tensor& InPlace(const char* name, const A& argument) {
    Method(name, argument);
    return *this;
  }

  kmosaic_torch::TensorPointer impl_;
};

inline indexing::TensorIndex::TensorIndex(const Tensor& tensor) : value_(tensor) {}
using TensorList = ArrayRef<Tensor>;
using OptionalTensorRef = std::optional<Tensor>;

namespace detail {
template <class R>
struct Unpacker;
template <>
struct Unpacker<kmosaic_torch::Value> {
  static kmosaic_torch::Value Get(const kmosaic_torch::Value& value) { return value; }
};
template <>
struct Unpacker<Tensor> {
  static Tensor Get(const kmosaic_torch::Value& value) { return Tensor(value.tensor()); }
};
template <>
struct Unpacker<bool> {
  static bool Get(const kmosaic_torch::Value& value) { return value.integer() != 0; }
};
template <>
struct Unpacker<std::vector<Tensor>> {
  static std::vector<Tensor> Get(const kmosaic_torch::Value& value) {
    std::vector<Tensor> all;
    for (const auto& item : value.items()) all.emplace_back(item.tensor());
    return all;
  }
};
template <class... T>
struct Unpacker<std::tuple<T...>> {
  template <size_t... I>
  static std::tuple<T...> Each(const kmosaic_torch::Value& value, std::index_sequence<I...>) {
    TORCH_CHECK(value.items().size() == sizeof...(T), "expected ", sizeof...(T), " results");
    return {Unpacker<T>::Get(value.items()[I])...};
  }
  static std::tuple<T...> Get(const kmosaic_torch::Value& value) {
    return Each(value, std::index_sequence_for<T...>());
  }
};
template <class R>
R Unpack(const kmosaic_torch::Value& value) {
  return Unpacker<R>::Get(value);
}
}  // namespace detail

inline Scalar Tensor::item() const {
  const kmosaic_torch::Value value =
      detail::Run<kmosaic_torch::Value>(".item", *this);
  if (value.kind() == KM_FLOAT) return value.real();
  if (value.kind() == KM_BOOL) return value.integer() != 0;
  return value.integer();
}
inline bool Tensor::equal(const Tensor& other) const {
  return detail::Run<bool>("equal", *this, other);
}
inline bool Tensor::allclose(const Tensor& other, double rtol, double atol) const {
  return detail::Run<bool>("allclose", *this, other, rtol, atol);
}
#define KMOSAIC_TORCH_METHOD(name)                                                  \
  template <class... A>                                                             \
  std::vector<Tensor> Tensor::name(const A&... arguments) const {                   \
    return detail::Run<std::vector<Tensor>>(#name, *this, arguments...);            \
  }                                                                                 \
  template <class... A>                                                             \
  std::vector<Tensor> Tensor::name(IntArrayRef list, const A&... arguments) const { \
    return detail::Run<std::vector<Tensor>>(#name, *this, list, arguments...);      \
  }
KMOSAIC_TORCH_LIST_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
#define KMOSAIC_TORCH_METHOD(name)                                                        \
  inline std::tuple<Tensor, Tensor> Tensor::name(int64_t dim, bool keepdim) const {       \
    return detail::Run<std::tuple<Tensor, Tensor>>(#name, *this, dim, keepdim);           \
  }
KMOSAIC_TORCH_EXTREMUM_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD
#define KMOSAIC_TORCH_METHOD(name)                                                \
  template <class... A>                                                           \
  std::tuple<Tensor, Tensor> Tensor::name(const A&... arguments) const {          \
    return detail::Run<std::tuple<Tensor, Tensor>>(#name, *this, arguments...);   \
  }
KMOSAIC_TORCH_PAIR_METHODS(KMOSAIC_TORCH_METHOD)
#undef KMOSAIC_TORCH_METHOD

inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "[ Tensor (undefined) ]";
  return out << detail::Run<kmosaic_torch::Value>(".__repr__", tensor).text();
}

}  // namespace at

namespace kmosaic_torch {
inline Value::Value(const at::Tensor& tensor) : Value(tensor.kmosaic_impl()) {}
}  // namespace kmosaic_torch

#endif  // KMOSAIC_TORCH_TENSOR_H_
