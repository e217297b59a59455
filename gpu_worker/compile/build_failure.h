// Whose fault a failed compiler run is.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_BUILD_FAILURE_H_
#define KMOSAIC_GPU_WORKER_COMPILE_BUILD_FAILURE_H_

#include <string>

#include "gpu_worker/compile/command_runner.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

struct BuildFailure {
  // COMPILE_ERROR, COMPILE_TIMEOUT, COMPILE_RESOURCES or INFRASTRUCTURE.
  kernelmosaic::v1::Verdict verdict = kernelmosaic::v1::VERDICT_COMPILE_ERROR;
  // One line; for INFRASTRUCTURE the cause on the machine, with what to do.
  std::string reason;
};

// Of a command that ended with another exit code than 0 or was ended by a limit.
BuildFailure ClassifyFailure(const CommandRequest& request, const CommandResult& result);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_BUILD_FAILURE_H_
