// Values that cross the C interface, owned on this side.
#ifndef KMOSAIC_TORCH_VALUE_H_
#define KMOSAIC_TORCH_VALUE_H_

#include <deque>

#include "kmosaic_torch/half.h"

namespace at {
class Tensor;
}

namespace kmosaic_torch {

KMOSAIC_TORCH_VARIABLE const KmHost* host = nullptr;

// One reference to a tensor of the harness.
struct TensorImpl {
  explicit TensorImpl(const KmTensor& tensor) : meta(tensor) {}
  ~TensorImpl() {
    if (meta.id != 0) host->release(meta.id);
  }
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;
  KmTensor meta;
};
using TensorPointer = std::shared_ptr<TensorImpl>;

// Keeps the arrays that KmValues point to.
struct Arena {
  std::deque<std::vector<KmValue>> arrays;
  std::deque<std::string> strings;
  std::deque<TensorPointer> tensors;
  void Clear() {
    arrays.clear();
    strings.clear();
    tensors.clear();
  }
};

class Value {
 public:
  Value() = default;
  Value(std::nullopt_t) {}
  Value(bool value) : kind_(KM_BOOL), integer_(value ? 1 : 0) {}
  Value(int value) : kind_(KM_INT), integer_(value) {}
  Value(unsigned value) : kind_(KM_INT), integer_(value) {}
  Value(long value) : kind_(KM_INT), integer_(value) {}
  Value(unsigned long value) : kind_(KM_INT), integer_(static_cast<int64_t>(value)) {}
  Value(long long value) : kind_(KM_INT), integer_(value) {}
  Value(float value) : kind_(KM_FLOAT), real_(static_cast<double>(value)) {}
  Value(double value) : kind_(KM_FLOAT), real_(value) {}
  Value(const char* value) : kind_(KM_STRING), text_(value) {}
  Value(std::string value) : kind_(KM_STRING), text_(std::move(value)) {}
  Value(std::string_view value) : kind_(KM_STRING), text_(value) {}
  Value(c10::Half value) : Value(static_cast<float>(value)) {}
  Value(c10::BFloat16 value) : Value(static_cast<float>(value)) {}
  Value(const c10::Scalar& value) {
    kind_ = value.kind();
    if (kind_ == KM_FLOAT) {
      real_ = value.toDouble();
    } else {
      integer_ = value.toLong();
    }
  }
  Value(c10::ScalarType value) : kind_(KM_DTYPE), integer_(static_cast<int64_t>(value)) {}
  Value(const c10::Device& value)
      : kind_(KM_DEVICE),
        detail_(value.index()),
        integer_(static_cast<int64_t>(value.type())) {}
  Value(c10::DeviceType value) : Value(c10::Device(value)) {}
  Value(c10::MemoryFormat value)
      : kind_(KM_MEMORY_FORMAT), integer_(static_cast<int64_t>(value)) {}
  Value(const TensorPointer& tensor)
      : kind_(tensor == nullptr ? KM_NONE : KM_TENSOR), tensor_(tensor) {}
  Value(const at::Tensor& tensor);
  template <class T>
  Value(const std::optional<T>& value) {
    if (value) *this = Value(*value);
  }
  template <class T>
  Value(c10::ArrayRef<T> values) : kind_(KM_LIST) {
    for (const T& value : values) items_.emplace_back(value);
  }
  template <class T>
  Value(const std::vector<T>& values) : kind_(KM_LIST) {
    for (const auto& value : values) items_.emplace_back(static_cast<const T&>(value));
  }
  template <class T, size_t N>
  Value(const std::array<T, N>& values) : kind_(KM_LIST) {
    for (const T& value : values) items_.emplace_back(value);
  }
  template <class K, class V>
  Value(const std::map<K, V>& values) = delete;
  template <class... T>
  Value(const std::tuple<T...>& values) : kind_(KM_TUPLE) {
    std::apply([&](const auto&... value) { (items_.emplace_back(value), ...); }, values);
  }
  template <class A, class B>
  Value(const std::pair<A, B>& values) : kind_(KM_TUPLE) {
    items_.emplace_back(values.first);
    items_.emplace_back(values.second);
  }

  static Value Keyword(const char* name) {
    Value value(name);
    value.kind_ = KM_KEYWORD;
    return value;
  }
  static Value OfKind(int32_t kind, std::vector<Value> items) {
    Value value;
    value.kind_ = kind;
    value.items_ = std::move(items);
    return value;
  }
  // Takes over what `raw` refers to.
  static Value FromRaw(const KmValue& raw) {
    Value value;
    value.kind_ = raw.kind;
    value.detail_ = raw.detail;
    value.integer_ = raw.integer;
    value.real_ = raw.real;
    switch (raw.kind) {
      case KM_STRING:
      case KM_KEYWORD:
        value.text_.assign(static_cast<const char*>(raw.data), static_cast<size_t>(raw.size));
        break;
      case KM_TENSOR:
        value.tensor_ = std::make_shared<TensorImpl>(*static_cast<const KmTensor*>(raw.data));
        break;
      case KM_LIST:
      case KM_TUPLE:
      case KM_SLICE: {
        const auto* items = static_cast<const KmValue*>(raw.data);
        const int64_t count = raw.kind == KM_SLICE ? 3 : raw.size;
        for (int64_t i = 0; i < count; ++i) value.items_.push_back(FromRaw(items[i]));
        break;
      }
      default:
        break;
    }
    return value;
  }

  KmValue ToRaw(Arena* arena) const {
    KmValue raw = {};
    raw.kind = kind_;
    raw.detail = detail_;
    raw.integer = integer_;
    raw.real = real_;
    switch (kind_) {
      case KM_STRING:
      case KM_KEYWORD:
        arena->strings.push_back(text_);
        raw.data = arena->strings.back().c_str();
        raw.size = static_cast<int64_t>(text_.size());
        break;
      case KM_TENSOR:
        arena->tensors.push_back(tensor_);
        raw.data = &tensor_->meta;
        break;
      case KM_LIST:
      case KM_TUPLE:
      case KM_SLICE: {
        std::vector<KmValue> items;
        items.reserve(items_.size());
        for (const Value& item : items_) items.push_back(item.ToRaw(arena));
        arena->arrays.push_back(std::move(items));
        raw.data = arena->arrays.back().data();
        raw.size = static_cast<int64_t>(items_.size());
        break;
      }
      default:
        break;
    }
    return raw;
  }

  int32_t kind() const { return kind_; }
  int32_t detail() const { return detail_; }
  int64_t integer() const { return integer_; }
  double real() const { return kind_ == KM_FLOAT ? real_ : static_cast<double>(integer_); }
  const std::string& text() const { return text_; }
  const std::vector<Value>& items() const { return items_; }
  const TensorPointer& tensor() const { return tensor_; }

 private:
  int32_t kind_ = KM_NONE;
  int32_t detail_ = 0;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Value> items_;
  TensorPointer tensor_;
};

// An exception that a callback raised in Python.
class PythonError : public c10::Error {
 public:
  explicit PythonError(std::string text) : c10::Error(std::move(text), KM_PYTHON_ERROR) {}
};

// Runs a torch operation in the harness.
inline Value Call(const char* name, const std::vector<Value>& arguments) {
  if (host == nullptr) throw c10::Error("torch is called while the extension is being loaded");
  Arena arena;
  std::vector<KmValue> raw;
  raw.reserve(arguments.size());
  for (const Value& argument : arguments) raw.push_back(argument.ToRaw(&arena));
  KmValue result = {};
  const int32_t status = host->call(name, raw.data(), static_cast<int64_t>(raw.size()), &result);
  Value value = Value::FromRaw(result);
  if (status != KM_OK) throw PythonError(value.text());
  return value;
}

}  // namespace kmosaic_torch

#endif  // KMOSAIC_TORCH_VALUE_H_
