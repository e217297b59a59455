// Compilers in the real sandbox.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_SANDBOX_RUNNER_H_
#define KMOSAIC_GPU_WORKER_COMPILE_SANDBOX_RUNNER_H_

#include "gpu_worker/compile/command_runner.h"
#include "gpu_worker/sandbox/compiler_sandbox.h"

namespace kmosaic {

// `sandbox` must outlive it.
class SandboxRunner : public CommandRunner {
 public:
  explicit SandboxRunner(const CompilerSandbox* sandbox) : sandbox_(sandbox) {}
  absl::StatusOr<CommandResult> Run(const CommandRequest& request) override;

 private:
  const CompilerSandbox* const sandbox_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_SANDBOX_RUNNER_H_
