// Stackful coroutines for device threads: a stack with a guard page and a switch that costs a few
// nanoseconds (no system call). x86-64 System V only.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FIBER_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FIBER_H_

#include <cstddef>

namespace kmosaic::emulation {

// A stack pointer whose frame holds the callee-saved registers.
using Context = void*;

// Saves the running context into *from and goes on with `to`. `to` must have been made by
// PrepareContext or saved by an earlier switch, and not yet gone on with.
void SwitchContext(Context* from, Context to);

// Goes on with `to` and forgets the running context. Works inside a signal handler.
[[noreturn]] void JumpToContext(Context to);

// Memory for one fiber. Pages are taken by the system only when touched.
class FiberStack {
 public:
  // A CUDA thread may have 512 KiB of local memory; a stack of this size holds that and the
  // frames around it.
  static constexpr std::size_t kBytes = 576 * 1024;

  FiberStack() = default;
  ~FiberStack();
  FiberStack(FiberStack&& other) noexcept;
  FiberStack& operator=(FiberStack&& other) noexcept;

  // False when the system gives no memory.
  bool Allocate();
  // Is `address` in the guard below the stack?
  bool GuardHolds(const void* address) const;
  // The context that starts `entry` on this (then empty) stack. `entry` must never return.
  Context PrepareContext(void (*entry)()) const;

 private:
  char* base_ = nullptr;  // of the guard
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FIBER_H_
