// AT_DISPATCH_*: runs a lambda with scalar_t bound to the tensor's element type.
#ifndef KMOSAIC_TORCH_DISPATCH_H_
#define KMOSAIC_TORCH_DISPATCH_H_

#include "kmosaic_torch/tensor.h"

namespace kmosaic_torch {
inline c10::ScalarType DispatchType(c10::ScalarType type) { return type; }
inline c10::ScalarType DispatchType(caffe2::TypeMeta type) { return type.toScalarType(); }
inline c10::ScalarType DispatchType(const at::DeprecatedTypeProperties& type) {
  return type.scalarType();
}
template <c10::ScalarType type>
struct ScalarTypeToCpp;
#define KMOSAIC_TORCH_TYPE(name, cpp)                 \
  template <>                                         \
  struct ScalarTypeToCpp<c10::ScalarType::name> {     \
    using type = cpp;                                 \
  };
KMOSAIC_TORCH_TYPE(Byte, uint8_t)
KMOSAIC_TORCH_TYPE(Char, int8_t)
KMOSAIC_TORCH_TYPE(Short, int16_t)
KMOSAIC_TORCH_TYPE(Int, int)
KMOSAIC_TORCH_TYPE(Long, int64_t)
KMOSAIC_TORCH_TYPE(Half, c10::Half)
KMOSAIC_TORCH_TYPE(Float, float)
KMOSAIC_TORCH_TYPE(Double, double)
KMOSAIC_TORCH_TYPE(Bool, bool)
KMOSAIC_TORCH_TYPE(BFloat16, c10::BFloat16)
KMOSAIC_TORCH_TYPE(UInt16, uint16_t)
KMOSAIC_TORCH_TYPE(UInt32, uint32_t)
KMOSAIC_TORCH_TYPE(UInt64, uint64_t)
#undef KMOSAIC_TORCH_TYPE
}  // namespace kmosaic_torch

namespace c10::impl {
template <ScalarType type>
struct ScalarTypeToCPPType : kmosaic_torch::ScalarTypeToCpp<type> {};
template <ScalarType type>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;
}  // namespace c10::impl

#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, hint, ...)                         \
  case enum_type: {                                                                   \
    using hint [[maybe_unused]] = c10::impl::ScalarTypeToCPPTypeT<enum_type>;         \
    return __VA_ARGS__();                                                             \
  }
#define AT_DISPATCH_CASE(enum_type, ...) \
  AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                 \
  [&] {                                                                                     \
    const auto& kmosaic_type = TYPE;                                                        \
    constexpr const char* at_dispatch_name = NAME;                                          \
    const c10::ScalarType kmosaic_scalar_type = kmosaic_torch::DispatchType(kmosaic_type);  \
    switch (kmosaic_scalar_type) {                                                          \
      __VA_ARGS__                                                                           \
      default:                                                                              \
        throw c10::NotImplementedError(c10::str('"', at_dispatch_name,                      \
                                                "\" not implemented for '",                 \
                                                kmosaic_scalar_type, "'"));                 \
    }                                                                                       \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)             \
  AT_DISPATCH_CASE(at::ScalarType::Double, __VA_ARGS__)  \
  AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)             \
  AT_DISPATCH_CASE(at::ScalarType::Byte, __VA_ARGS__)    \
  AT_DISPATCH_CASE(at::ScalarType::Char, __VA_ARGS__)    \
  AT_DISPATCH_CASE(at::ScalarType::Int, __VA_ARGS__)     \
  AT_DISPATCH_CASE(at::ScalarType::Long, __VA_ARGS__)    \
  AT_DISPATCH_CASE(at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...)                 \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(T1, TYPE, NAME, ...)                  \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(T1, T2, TYPE, NAME, ...)             \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__)        \
                                         AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...)         \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__)        \
                                         AT_DISPATCH_CASE(T2, __VA_ARGS__)    \
                                             AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                          \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__) \
                                     AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(T1, TYPE, NAME, ...)                  \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(T1, TYPE, NAME, ...)                  \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(T1, T2, TYPE, NAME, ...)             \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__)   \
                                         AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...)         \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
                                     AT_DISPATCH_CASE(T1, __VA_ARGS__)   \
                                         AT_DISPATCH_CASE(T2, __VA_ARGS__) \
                                             AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                        \
  AT_DISPATCH_SWITCH(                                                                   \
      TYPE, NAME,                                                                       \
      AT_PRIVATE_CASE_TYPE_USING_HINT(at::ScalarType::Int, index_t, __VA_ARGS__)        \
          AT_PRIVATE_CASE_TYPE_USING_HINT(at::ScalarType::Long, index_t, __VA_ARGS__))

#endif  // KMOSAIC_TORCH_DISPATCH_H_
