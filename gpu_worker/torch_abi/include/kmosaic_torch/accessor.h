// Tensor accessors: indexing with [] over raw memory, usable in kernels.
#ifndef KMOSAIC_TORCH_ACCESSOR_H_
#define KMOSAIC_TORCH_ACCESSOR_H_

#include "kmosaic_torch/half.h"

namespace at {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  C10_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE auto operator[](Index i) const {
    return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1,
                                                   strides_ + 1);
  }
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

template <class T, template <class U> class Traits, class Index>
class TensorAccessor<T, 1, Traits, Index> {
 public:
  using PtrType = typename Traits<T>::PtrType;
  C10_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE T& operator[](Index i) const { return data_[strides_[0] * i]; }
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

// Carries sizes and strides by value, so that it can be a kernel's argument.
template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  template <class Source>
  GenericPackedTensorAccessor(PtrType data, const Source* sizes, const Source* strides)
      : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1,
                                                     strides_ + 1);
    }
  }
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};

template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
          class Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;

}  // namespace at

#endif  // KMOSAIC_TORCH_ACCESSOR_H_
