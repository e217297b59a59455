// Cooperative groups of one block: thread_block, tiles of up to a warp, coalesced groups.
#ifndef KMOSAIC_EMULATION_COOPERATIVE_GROUPS_H_
#define KMOSAIC_EMULATION_COOPERATIVE_GROUPS_H_

#include <cuda_runtime.h>

namespace cooperative_groups {

class thread_block {
 public:
  void sync() const { __syncthreads(); }
  static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
using thread_group = thread_block;
inline thread_block this_thread_block() { return {}; }

// Lanes of one warp that work together.
class LaneGroup {
 public:
  explicit LaneGroup(unsigned mask) : mask_(mask) {}
  void sync() const { __syncwarp(mask_); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & ((1u << kmosaic_emu_lane()) - 1)));
  }
  unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned num_threads() const { return size(); }
  // By rank in the group.
  template <class T>
  T shfl(T value, unsigned rank) const {
    return __shfl_sync(mask_, value, LaneOf(rank));
  }
  template <class T>
  T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank() + delta;
    return __shfl_sync(mask_, value, LaneOf(rank < size() ? rank : thread_rank()));
  }
  template <class T>
  T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return __shfl_sync(mask_, value, LaneOf(rank >= delta ? rank - delta : rank));
  }
  template <class T>
  T shfl_xor(T value, unsigned bits) const {
    const unsigned rank = thread_rank() ^ bits;
    return __shfl_sync(mask_, value, LaneOf(rank < size() ? rank : thread_rank()));
  }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  // Bit i is the vote of rank i.
  unsigned ballot(int predicate) const { return Ranks(__ballot_sync(mask_, predicate)); }
  template <class T>
  unsigned match_any(T value) const {
    return Ranks(__match_any_sync(mask_, value));
  }

 private:
  int LaneOf(unsigned rank) const {
    unsigned left = mask_;
    for (; rank > 0; --rank) left &= left - 1;
    return __ffs(static_cast<int>(left)) - 1;
  }
  unsigned Ranks(unsigned lanes) const {
    unsigned out = 0, rank = 0;
    for (unsigned left = mask_; left != 0; left &= left - 1, ++rank) {
      if ((lanes & left & (~left + 1)) != 0) out |= 1u << rank;
    }
    return out;
  }
  unsigned mask_;
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public LaneGroup {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "tiles of more than a warp are not emulated");

 public:
  thread_block_tile() : LaneGroup(Mask()) {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return kmosaic_emu_lane() % Size; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
  static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
  template <class T>
  T shfl(T value, int rank) const {
    return __shfl_sync(Mask(), value, rank, Size);
  }
  template <class T>
  T shfl_down(T value, unsigned delta) const {
    return __shfl_down_sync(Mask(), value, delta, Size);
  }
  template <class T>
  T shfl_up(T value, unsigned delta) const {
    return __shfl_up_sync(Mask(), value, delta, Size);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits) const {
    return __shfl_xor_sync(Mask(), value, static_cast<int>(bits), Size);
  }

 private:
  static unsigned Mask() {
    if constexpr (Size == 32) {
      return kmosaic_emulation::kAllLanes;
    } else {
      return ((1u << Size) - 1) << (kmosaic_emu_lane() / Size * Size);
    }
  }
};

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

class coalesced_group : public LaneGroup {
 public:
  using LaneGroup::LaneGroup;
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <class Group>
inline void sync(const Group& group) {
  group.sync();
}

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

template <class Group, class T, class Combine>
inline T reduce(const Group& group, T value, Combine combine) {
  T all = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    all = combine(all, group.shfl(value, static_cast<int>(rank)));
  }
  return all;
}
template <class Group, class T, class Combine>
inline T inclusive_scan(const Group& group, T value, Combine combine) {
  T all = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T other = group.shfl(value, static_cast<int>(rank));
    if (rank <= group.thread_rank()) all = combine(all, other);
  }
  return all;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>()) - value;
}

}  // namespace cooperative_groups

#endif  // KMOSAIC_EMULATION_COOPERATIVE_GROUPS_H_
