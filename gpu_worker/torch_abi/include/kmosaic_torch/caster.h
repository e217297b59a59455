// What a C++ parameter takes from Python, as pybind11 and torch's own casters have it.
#ifndef KMOSAIC_TORCH_CASTER_H_
#define KMOSAIC_TORCH_CASTER_H_

#include "kmosaic_torch/functions.h"

namespace kmosaic_torch {

// Load(value, &out) is false when the argument does not fit. Text() is the type's name in an
// error message.
template <class T, class = void>
struct Caster;

template <>
struct Caster<at::Tensor> {
  static bool Load(const Value& value, at::Tensor* out) {
    if (value.kind() != KM_TENSOR) return false;
    *out = at::Tensor(value.tensor());
    return true;
  }
  static std::string Text() { return "torch.Tensor"; }
};
template <>
struct Caster<bool> {
  static bool Load(const Value& value, bool* out) {
    if (value.kind() != KM_BOOL && value.kind() != KM_NONE) return false;
    *out = value.kind() == KM_BOOL && value.integer() != 0;
    return true;
  }
  static std::string Text() { return "bool"; }
};
template <class T>
struct Caster<T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value &&
                                  !std::is_same<T, char>::value>> {
  static bool Load(const Value& value, T* out) {
    if (value.kind() != KM_INT && value.kind() != KM_BOOL) return false;
    const int64_t integer = value.integer();
    if constexpr (std::is_unsigned<T>::value) {
      if (integer < 0 || static_cast<uint64_t>(integer) > std::numeric_limits<T>::max()) {
        return false;
      }
    } else if (integer < std::numeric_limits<T>::min() ||
               integer > std::numeric_limits<T>::max()) {
      return false;
    }
    *out = static_cast<T>(integer);
    return true;
  }
  static std::string Text() { return "int"; }
};
template <class T>
struct Caster<T, std::enable_if_t<std::is_floating_point<T>::value>> {
  static bool Load(const Value& value, T* out) {
    if (value.kind() != KM_FLOAT && value.kind() != KM_INT && value.kind() != KM_BOOL) {
      return false;
    }
    *out = static_cast<T>(value.real());
    return true;
  }
  static std::string Text() { return "float"; }
};
template <>
struct Caster<std::string> {
  static bool Load(const Value& value, std::string* out) {
    if (value.kind() != KM_STRING) return false;
    *out = value.text();
    return true;
  }
  static std::string Text() { return "str"; }
};
template <>
struct Caster<std::string_view> {
  static std::string Text() { return "str"; }
};
template <>
struct Caster<const char*> {
  static std::string Text() { return "str"; }
};
template <>
struct Caster<char> {
  static bool Load(const Value& value, char* out) {
    if (value.kind() != KM_STRING || value.text().size() != 1) return false;
    *out = value.text()[0];
    return true;
  }
  static std::string Text() { return "str"; }
};
template <>
struct Caster<c10::Scalar> {
  static bool Load(const Value& value, c10::Scalar* out) {
    switch (value.kind()) {
      case KM_BOOL:
        *out = value.integer() != 0;
        return true;
      case KM_INT:
        *out = value.integer();
        return true;
      case KM_FLOAT:
        *out = value.real();
        return true;
      default:
        return false;
    }
  }
  static std::string Text() { return "Union[int, float, bool]"; }
};
template <>
struct Caster<c10::ScalarType> {
  static bool Load(const Value& value, c10::ScalarType* out) {
    if (value.kind() != KM_DTYPE) return false;
    *out = static_cast<c10::ScalarType>(value.integer());
    return true;
  }
  static std::string Text() { return "torch.dtype"; }
};
template <>
struct Caster<c10::Device> {
  static bool Load(const Value& value, c10::Device* out) {
    if (value.kind() != KM_DEVICE) return false;
    *out = c10::Device(static_cast<c10::DeviceType>(value.integer()),
                       static_cast<c10::DeviceIndex>(value.detail()));
    return true;
  }
  static std::string Text() { return "torch.device"; }
};
template <class T>
struct Caster<std::optional<T>> {
  static bool Load(const Value& value, std::optional<T>* out) {
    if (value.kind() == KM_NONE) {
      out->reset();
      return true;
    }
    T inner{};
    if (!Caster<T>::Load(value, &inner)) return false;
    *out = std::move(inner);
    return true;
  }
  static std::string Text() { return "Optional[" + Caster<T>::Text() + "]"; }
};
template <class T>
struct Caster<std::vector<T>> {
  static bool Load(const Value& value, std::vector<T>* out) {
    if (value.kind() != KM_LIST && value.kind() != KM_TUPLE) return false;
    out->clear();
    for (const Value& item : value.items()) {
      T element{};
      if (!Caster<T>::Load(item, &element)) return false;
      out->push_back(std::move(element));
    }
    return true;
  }
  static std::string Text() { return "List[" + Caster<T>::Text() + "]"; }
};
template <class T, size_t N>
struct Caster<std::array<T, N>> {
  static bool Load(const Value& value, std::array<T, N>* out) {
    if ((value.kind() != KM_LIST && value.kind() != KM_TUPLE) || value.items().size() != N) {
      return false;
    }
    for (size_t i = 0; i < N; ++i) {
      if (!Caster<T>::Load(value.items()[i], &(*out)[i])) return false;
    }
    return true;
  }
  static std::string Text() {
    return "Annotated[List[" + Caster<T>::Text() + "], FixedSize(" + std::to_string(N) + ")]";
  }
};
template <class... T>
struct Caster<std::tuple<T...>> {
  template <size_t... I>
  static bool Each(const Value& value, std::tuple<T...>* out, std::index_sequence<I...>) {
    return (Caster<T>::Load(value.items()[I], &std::get<I>(*out)) && ...);
  }
  static bool Load(const Value& value, std::tuple<T...>* out) {
    if ((value.kind() != KM_LIST && value.kind() != KM_TUPLE) ||
        value.items().size() != sizeof...(T)) {
      return false;
    }
    return Each(value, out, std::index_sequence_for<T...>());
  }
  static std::string Text() {
    std::string text;
    ((text += (text.empty() ? "" : ", ") + Caster<T>::Text()), ...);
    return "Tuple[" + text + "]";
  }
};
template <class A, class B>
struct Caster<std::pair<A, B>> {
  static bool Load(const Value& value, std::pair<A, B>* out) {
    return (value.kind() == KM_LIST || value.kind() == KM_TUPLE) && value.items().size() == 2 &&
           Caster<A>::Load(value.items()[0], &out->first) &&
           Caster<B>::Load(value.items()[1], &out->second);
  }
  static std::string Text() {
    return "Tuple[" + Caster<A>::Text() + ", " + Caster<B>::Text() + "]";
  }
};
template <class T>
struct Caster<c10::ArrayRef<T>> {
  static std::string Text() { return "List[" + Caster<T>::Text() + "]"; }
};

// What holds an argument during a call, and how the parameter is made from it.
template <class T>
struct Holder {
  T value{};
  bool Load(const Value& from) { return Caster<T>::Load(from, &value); }
  T& Get() { return value; }
};
template <>
struct Holder<c10::Device> {
  c10::Device value = c10::DeviceType::CPU;
  bool Load(const Value& from) { return Caster<c10::Device>::Load(from, &value); }
  c10::Device& Get() { return value; }
};
template <class T>
struct Holder<c10::ArrayRef<T>> {
  std::vector<T> value;
  c10::ArrayRef<T> view;
  bool Load(const Value& from) { return Caster<std::vector<T>>::Load(from, &value); }
  c10::ArrayRef<T>& Get() {
    view = value;
    return view;
  }
};
template <class T>
struct Holder<std::optional<c10::ArrayRef<T>>> {
  std::optional<std::vector<T>> value;
  std::optional<c10::ArrayRef<T>> view;
  bool Load(const Value& from) {
    return Caster<std::optional<std::vector<T>>>::Load(from, &value);
  }
  std::optional<c10::ArrayRef<T>>& Get() {
    if (value) view = *value;
    return view;
  }
};
template <>
struct Holder<std::string_view> {
  std::string value;
  std::string_view view;
  bool Load(const Value& from) { return Caster<std::string>::Load(from, &value); }
  std::string_view& Get() {
    view = value;
    return view;
  }
};
template <>
struct Holder<const char*> {
  std::string value;
  const char* view = nullptr;
  bool Load(const Value& from) { return Caster<std::string>::Load(from, &value); }
  const char*& Get() {
    view = value.c_str();
    return view;
  }
};

template <class R>
inline std::string ResultText() {
  if constexpr (std::is_void<R>::value) {
    return "None";
  } else {
    return Caster<std::decay_t<R>>::Text();
  }
}

}  // namespace kmosaic_torch

#endif  // KMOSAIC_TORCH_CASTER_H_
