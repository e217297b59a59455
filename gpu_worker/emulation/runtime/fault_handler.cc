#include "gpu_worker/emulation/runtime/fault_handler.h"

namespace kmosaic::emulation {

namespace {

alignas(16) char signal_stack[64 * 1024];
FaultHandlerScope::OnFault on_fault_now = nullptr;

void Handle(int signal, siginfo_t* info, void* /*context*/) { on_fault_now(signal, *info); }

}  // namespace

FaultHandlerScope::FaultHandlerScope(OnFault on_fault) {
  on_fault_now = on_fault;
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof(signal_stack);
  sigaltstack(&stack, &old_stack_);
  struct sigaction action {};
  action.sa_sigaction = &Handle;
  // The handler leaves by a jump, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &old_segv_);
  sigaction(SIGBUS, &action, &old_bus_);
  sigaction(SIGFPE, &action, &old_fpe_);
}

FaultHandlerScope::~FaultHandlerScope() {
  sigaction(SIGFPE, &old_fpe_, nullptr);
  sigaction(SIGBUS, &old_bus_, nullptr);
  sigaction(SIGSEGV, &old_segv_, nullptr);
  sigaltstack(&old_stack_, nullptr);
}

}  // namespace kmosaic::emulation
