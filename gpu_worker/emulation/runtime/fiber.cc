#include "gpu_worker/emulation/runtime/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#if !defined(__x86_64__)
#error "the emulated device needs x86-64"
#endif

// rdi: where the running stack pointer is stored; rsi: the one to go on with. The six
// callee-saved registers are all that a System V function call must preserve here (device code
// never changes the floating-point control words).
asm(R"(
.text
.p2align 4
.globl kmosaic_emu_switch_context
.hidden kmosaic_emu_switch_context
.type kmosaic_emu_switch_context,@function
kmosaic_emu_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kmosaic_emu_switch_context,.-kmosaic_emu_switch_context
)");

extern "C" void kmosaic_emu_switch_context(void** from, void* to);

namespace kmosaic::emulation {

namespace {
constexpr std::size_t kGuardBytes = 64 * 1024;
constexpr std::size_t kSavedRegisters = 6;
}  // namespace

void SwitchContext(Context* from, Context to) { kmosaic_emu_switch_context(from, to); }

void JumpToContext(Context to) {
  Context forgotten = nullptr;
  kmosaic_emu_switch_context(&forgotten, to);
  __builtin_unreachable();
}

FiberStack::~FiberStack() {
  if (base_ != nullptr) munmap(base_, kGuardBytes + kBytes);
}

FiberStack::FiberStack(FiberStack&& other) noexcept : base_(std::exchange(other.base_, nullptr)) {}

FiberStack& FiberStack::operator=(FiberStack&& other) noexcept {
  std::swap(base_, other.base_);
  return *this;
}

bool FiberStack::Allocate() {
  if (base_ != nullptr) return true;
  void* memory = mmap(nullptr, kGuardBytes + kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    munmap(memory, kGuardBytes + kBytes);
    return false;
  }
  base_ = static_cast<char*>(memory);
  return true;
}

bool FiberStack::GuardHolds(const void* address) const {
  const char* at = static_cast<const char*>(address);
  return base_ != nullptr && at >= base_ && at < base_ + kGuardBytes;
}

Context FiberStack::PrepareContext(void (*entry)()) const {
  // At a function's first instruction the stack pointer is 8 below a multiple of 16: the return
  // address (here none) lies there.
  auto* top = reinterpret_cast<std::uintptr_t*>(base_ + kGuardBytes + kBytes);
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(entry);
  for (std::size_t i = 0; i < kSavedRegisters; ++i) *--top = 0;
  return top;
}

}  // namespace kmosaic::emulation
