// Atomic operations. Device threads take turns on one host thread, so a plain read-modify-write
// is atomic. Each gives the old value back.
#ifndef KMOSAIC_EMULATION_ATOMICS_H_
#define KMOSAIC_EMULATION_ATOMICS_H_

#include "kmosaic_emulation/synchronisation.h"

namespace kmosaic_emulation {

template <class T>
struct Identity {
  using type = T;
};
// A parameter of this type takes no part in deduction: the pointer's type decides.
template <class T>
using Value = typename Identity<T>::type;

// In a build that counts: an atomic, not a load and a store.
#ifdef KMOSAIC_EMULATION_COUNTED
template <class T, class Update>
__attribute__((noinline, no_sanitize("kernel-address"))) T ReadModifyWrite(T* address,
                                                                           Update update) {
  kmosaic_emu_atomic(address, sizeof(T));
#else
template <class T, class Update>
inline T ReadModifyWrite(T* address, Update update) {
#endif
  SpinHint();
  const T old = *address;
  *address = update(old);
  return old;
}

}  // namespace kmosaic_emulation

#define KMOSAIC_EMU_ATOMIC(name, expression)                                              \
  template <class T>                                                                      \
  inline T name(T* address, kmosaic_emulation::Value<T> value) {                          \
    return kmosaic_emulation::ReadModifyWrite(address,                                    \
                                              [&](T old) -> T { return expression; });    \
  }                                                                                       \
  template <class T>                                                                      \
  inline T name##_block(T* address, kmosaic_emulation::Value<T> value) {                  \
    return name(address, value);                                                          \
  }                                                                                       \
  template <class T>                                                                      \
  inline T name##_system(T* address, kmosaic_emulation::Value<T> value) {                 \
    return name(address, value);                                                          \
  }
KMOSAIC_EMU_ATOMIC(atomicAdd, static_cast<T>(old + value))
KMOSAIC_EMU_ATOMIC(atomicSub, static_cast<T>(old - value))
KMOSAIC_EMU_ATOMIC(atomicMax, old < value ? value : old)
KMOSAIC_EMU_ATOMIC(atomicMin, value < old ? value : old)
KMOSAIC_EMU_ATOMIC(atomicExch, value)
KMOSAIC_EMU_ATOMIC(atomicAnd, static_cast<T>(old & value))
KMOSAIC_EMU_ATOMIC(atomicOr, static_cast<T>(old | value))
KMOSAIC_EMU_ATOMIC(atomicXor, static_cast<T>(old ^ value))
// Wrap-around counters (CUDA programming guide, atomicInc and atomicDec).
KMOSAIC_EMU_ATOMIC(atomicInc, old >= value ? T(0) : static_cast<T>(old + 1))
KMOSAIC_EMU_ATOMIC(atomicDec, old == 0 || old > value ? value : static_cast<T>(old - 1))
#undef KMOSAIC_EMU_ATOMIC

// Vectors are added part by part.
inline float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
          atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}

template <class T>
inline T atomicCAS(T* address, kmosaic_emulation::Value<T> compare,
                   kmosaic_emulation::Value<T> value) {
  return kmosaic_emulation::ReadModifyWrite(
      address, [&](T old) -> T { return old == compare ? value : old; });
}
template <class T>
inline T atomicCAS_block(T* address, kmosaic_emulation::Value<T> compare,
                         kmosaic_emulation::Value<T> value) {
  return atomicCAS(address, compare, value);
}
template <class T>
inline T atomicCAS_system(T* address, kmosaic_emulation::Value<T> compare,
                          kmosaic_emulation::Value<T> value) {
  return atomicCAS(address, compare, value);
}

#endif  // KMOSAIC_EMULATION_ATOMICS_H_
