// Turns faults inside device code into findings.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FAULT_HANDLER_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FAULT_HANDLER_H_

#include <signal.h>

namespace kmosaic::emulation {

// Takes SIGSEGV, SIGBUS and SIGFPE of the calling thread for as long as it lives, on a signal
// stack of its own, and gives them back to whoever had them.
class FaultHandlerScope {
 public:
  // Called inside the handler; must not return (it jumps out of the faulting code).
  using OnFault = void (*)(int signal, const siginfo_t& info);

  explicit FaultHandlerScope(OnFault on_fault);
  ~FaultHandlerScope();
  FaultHandlerScope(const FaultHandlerScope&) = delete;
  FaultHandlerScope& operator=(const FaultHandlerScope&) = delete;

 private:
  stack_t old_stack_{};
  struct sigaction old_segv_ {};
  struct sigaction old_bus_ {};
  struct sigaction old_fpe_ {};
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_FAULT_HANDLER_H_
