// Barriers, fences and warp operations.
#ifndef KMOSAIC_EMULATION_SYNCHRONISATION_H_
#define KMOSAIC_EMULATION_SYNCHRONISATION_H_

#include "kmosaic_emulation/language.h"

namespace kmosaic_emulation {

constexpr unsigned kAllLanes = 0xffffffffu;

// Counts operations that a spinning thread does; every so often the other threads get a turn.
KMOSAIC_EMU_VARIABLE unsigned spin_count;
inline void SpinHint() {
  if (__builtin_expect((++spin_count & 1023u) == 0, 0)) kmosaic_emu_yield();
}

template <class T>
inline T Shuffle(int op, unsigned mask, T value, int argument, int width) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value,
                "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = kmosaic_emu_warp(op, mask, bits, argument, width);
  memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

template <class T>
inline uint64_t Bits(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return bits;
}

}  // namespace kmosaic_emulation

inline void __syncthreads() { kmosaic_emu_barrier(KM_BARRIER_PLAIN, 0); }
inline int __syncthreads_count(int predicate) {
  return kmosaic_emu_barrier(KM_BARRIER_COUNT, predicate);
}
inline int __syncthreads_and(int predicate) {
  return kmosaic_emu_barrier(KM_BARRIER_AND, predicate);
}
inline int __syncthreads_or(int predicate) {
  return kmosaic_emu_barrier(KM_BARRIER_OR, predicate);
}
inline void __syncwarp(unsigned mask = kmosaic_emulation::kAllLanes) {
  kmosaic_emu_warp(KM_WARP_SYNC, mask, 0, 0, 32);
}
// One host thread runs everything, so a fence has nothing to order but the compiler.
inline void __threadfence_block() {
  asm volatile("" ::: "memory");
#ifdef KMOSAIC_EMULATION_COUNTED
  kmosaic_emu_fence();
#endif
  kmosaic_emulation::SpinHint();
}
inline void __threadfence() { __threadfence_block(); }
inline void __threadfence_system() { __threadfence_block(); }
inline void __nanosleep(unsigned) { kmosaic_emu_yield(); }
inline void __trap() { kmosaic_emu_trap("__trap() was called"); }
inline void __brkpt() { kmosaic_emu_trap("__brkpt() was called"); }
inline long long clock64() {
  kmosaic_emulation::SpinHint();
  return static_cast<long long>(__builtin_ia32_rdtsc());
}

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return kmosaic_emulation::Shuffle(KM_WARP_SHUFFLE_INDEX, mask, value, source, width);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return kmosaic_emulation::Shuffle(KM_WARP_SHUFFLE_UP, mask, value, static_cast<int>(delta),
                                    width);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return kmosaic_emulation::Shuffle(KM_WARP_SHUFFLE_DOWN, mask, value, static_cast<int>(delta),
                                    width);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  return kmosaic_emulation::Shuffle(KM_WARP_SHUFFLE_XOR, mask, value, lane_mask, width);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(kmosaic_emu_warp(KM_WARP_BALLOT, mask, predicate != 0, 0, 32));
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  const uint64_t votes = kmosaic_emu_warp(KM_WARP_BALLOT, mask, predicate != 0, 0, 32);
  return static_cast<unsigned>(votes) == static_cast<unsigned>(votes >> 32);
}
inline unsigned __activemask() {
  return static_cast<unsigned>(
      kmosaic_emu_warp(KM_WARP_ACTIVE, kmosaic_emulation::kAllLanes, 0, 0, 32));
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value) {
  return static_cast<unsigned>(
      kmosaic_emu_warp(KM_WARP_MATCH_ANY, mask, kmosaic_emulation::Bits(value), 0, 32));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all) {
  const auto same = static_cast<unsigned>(
      kmosaic_emu_warp(KM_WARP_MATCH_ALL, mask, kmosaic_emulation::Bits(value), 0, 32));
  *all = same != 0;
  return same;
}

#define KMOSAIC_EMU_REDUCE(name, type, op, wide)                                             \
  inline type name(unsigned mask, type value) {                                              \
    return static_cast<type>(                                                                \
        kmosaic_emu_warp(op, mask, static_cast<uint64_t>(static_cast<wide>(value)), 0, 32)); \
  }
KMOSAIC_EMU_REDUCE(__reduce_add_sync, int, KM_WARP_ADD, int64_t)
KMOSAIC_EMU_REDUCE(__reduce_add_sync, unsigned, KM_WARP_ADD, uint64_t)
KMOSAIC_EMU_REDUCE(__reduce_min_sync, int, KM_WARP_MIN_SIGNED, int64_t)
KMOSAIC_EMU_REDUCE(__reduce_min_sync, unsigned, KM_WARP_MIN_UNSIGNED, uint64_t)
KMOSAIC_EMU_REDUCE(__reduce_max_sync, int, KM_WARP_MAX_SIGNED, int64_t)
KMOSAIC_EMU_REDUCE(__reduce_max_sync, unsigned, KM_WARP_MAX_UNSIGNED, uint64_t)
KMOSAIC_EMU_REDUCE(__reduce_and_sync, unsigned, KM_WARP_AND, uint64_t)
KMOSAIC_EMU_REDUCE(__reduce_or_sync, unsigned, KM_WARP_OR, uint64_t)
KMOSAIC_EMU_REDUCE(__reduce_xor_sync, unsigned, KM_WARP_XOR, uint64_t)
#undef KMOSAIC_EMU_REDUCE

#endif  // KMOSAIC_EMULATION_SYNCHRONISATION_H_
