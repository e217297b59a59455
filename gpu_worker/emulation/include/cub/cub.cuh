// The block and warp collectives of CUB, in terms of barriers and shuffles.
#ifndef KMOSAIC_EMULATION_CUB_CUB_CUH_
#define KMOSAIC_EMULATION_CUB_CUB_CUH_

#include <cuda_runtime.h>

#define CUB_MIN(a, b) (((a) > (b)) ? (b) : (a))
#define CUB_MAX(a, b) (((b) > (a)) ? (b) : (a))

namespace cub {

struct Sum {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
template <class Key, class T>
struct KeyValuePair {
  Key key;
  T value;
};
struct ArgMax {
  template <class K, class T>
  KeyValuePair<K, T> operator()(const KeyValuePair<K, T>& a, const KeyValuePair<K, T>& b) const {
    return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class T>
  KeyValuePair<K, T> operator()(const KeyValuePair<K, T>& a, const KeyValuePair<K, T>& b) const {
    return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace kmosaic_detail {
inline unsigned Rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
// Storage that holds a T without constructing it.
template <class T, int Count>
struct Slots {
  alignas(T) unsigned char bytes[sizeof(T) * Count];
  void Put(unsigned i, const T& value) { memcpy(bytes + sizeof(T) * i, &value, sizeof(T)); }
  T Get(unsigned i) const {
    T value;
    memcpy(static_cast<void*>(&value), bytes + sizeof(T) * i, sizeof(T));
    return value;
  }
};
}  // namespace kmosaic_detail

// The result is thread 0's alone, as in CUB; the storage may be used again after __syncthreads.
template <class T, int BlockX, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int BlockY = 1,
          int BlockZ = 1, int LegacyArch = 0>
class BlockReduce {
 public:
  static constexpr int kThreads = BlockX * BlockY * BlockZ;
  using TempStorage = kmosaic_detail::Slots<T, kThreads>;
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Combine>
  T Reduce(T value, Combine combine, int valid = kThreads) {
    const unsigned rank = kmosaic_detail::Rank();
    storage_.Put(rank, value);
    __syncthreads();
    T all = value;
    if (rank == 0) {
      for (int i = 1; i < valid && i < kThreads; ++i) {
        all = combine(all, storage_.Get(static_cast<unsigned>(i)));
      }
    }
    return all;
  }
  template <class Combine, int Items>
  T Reduce(T (&values)[Items], Combine combine) {
    T all = values[0];
    for (int i = 1; i < Items; ++i) all = combine(all, values[i]);
    return Reduce(all, combine);
  }
  T Sum(T value, int valid = kThreads) { return Reduce(value, cub::Sum(), valid); }
  template <int Items>
  T Sum(T (&values)[Items]) {
    return Reduce(values, cub::Sum());
  }

 private:
  TempStorage& storage_;
};

template <class T, int BlockX, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int BlockY = 1,
          int BlockZ = 1, int LegacyArch = 0>
class BlockScan {
 public:
  static constexpr int kThreads = BlockX * BlockY * BlockZ;
  using TempStorage = kmosaic_detail::Slots<T, kThreads>;
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  template <class Combine>
  void InclusiveScan(T value, T& out, Combine combine, T& aggregate) {
    const unsigned rank = kmosaic_detail::Rank();
    storage_.Put(rank, value);
    __syncthreads();
    T sum = storage_.Get(0), mine = sum;
    for (unsigned i = 1; i < kThreads; ++i) {
      sum = combine(sum, storage_.Get(i));
      if (i == rank) mine = sum;
    }
    out = mine;
    aggregate = sum;
  }
  template <class Combine>
  void InclusiveScan(T value, T& out, Combine combine) {
    T aggregate;
    InclusiveScan(value, out, combine, aggregate);
  }
  template <class Combine>
  void ExclusiveScan(T value, T& out, T initial, Combine combine, T& aggregate) {
    const unsigned rank = kmosaic_detail::Rank();
    storage_.Put(rank, value);
    __syncthreads();
    T sum = initial, mine = initial;
    for (unsigned i = 0; i < kThreads; ++i) {
      if (i == rank) mine = sum;
      sum = combine(sum, storage_.Get(i));
    }
    aggregate = storage_.Get(0);
    for (unsigned i = 1; i < kThreads; ++i) aggregate = combine(aggregate, storage_.Get(i));
    out = mine;
  }
  template <class Combine>
  void ExclusiveScan(T value, T& out, T initial, Combine combine) {
    T aggregate;
    ExclusiveScan(value, out, initial, combine, aggregate);
  }
  void InclusiveSum(T value, T& out) { InclusiveScan(value, out, cub::Sum()); }
  void InclusiveSum(T value, T& out, T& aggregate) {
    InclusiveScan(value, out, cub::Sum(), aggregate);
  }
  void ExclusiveSum(T value, T& out) { ExclusiveScan(value, out, T(0), cub::Sum()); }
  void ExclusiveSum(T value, T& out, T& aggregate) {
    ExclusiveScan(value, out, T(0), cub::Sum(), aggregate);
  }
  template <int Items>
  void InclusiveSum(T (&in)[Items], T (&out)[Items]) {
    T total = 0;
    for (int i = 0; i < Items; ++i) total += in[i];
    T before;
    ExclusiveSum(total, before);
    for (int i = 0; i < Items; ++i) out[i] = before += in[i];
  }
  template <int Items>
  void ExclusiveSum(T (&in)[Items], T (&out)[Items]) {
    T total = 0;
    for (int i = 0; i < Items; ++i) total += in[i];
    T before;
    ExclusiveSum(total, before);
    for (int i = 0; i < Items; ++i) {
      const T value = in[i];
      out[i] = before;
      before += value;
    }
  }

 private:
  TempStorage& storage_;
};

// The result is the first lane's alone.
template <class T, int Width = 32, int LegacyArch = 0>
class WarpReduce {
 public:
  struct TempStorage {
    char unused;
  };
  explicit WarpReduce(TempStorage&) {}
  template <class Combine>
  T Reduce(T value, Combine combine) {
    for (unsigned delta = Width / 2; delta > 0; delta /= 2) {
      value = combine(value, __shfl_down_sync(kmosaic_emulation::kAllLanes, value, delta, Width));
    }
    return value;
  }
  T Sum(T value) { return Reduce(value, cub::Sum()); }
};

}  // namespace cub

#endif  // KMOSAIC_EMULATION_CUB_CUB_CUH_
