#include "gpu_worker/compile/sandbox_runner.h"

#include <utility>

#include "common/base/status.h"

namespace kmosaic {

absl::StatusOr<CommandResult> SandboxRunner::Run(const CommandRequest& request) {
  SandboxedCommand command;
  command.argv = request.argv;
  command.directory = request.directory;
  command.readable = request.readable;
  command.wall_limit = request.wall_limit;
  if (request.memory_bytes > 0) command.memory_bytes = request.memory_bytes;
  if (request.file_bytes > 0) command.file_bytes = request.file_bytes;
  if (request.processes > 0) command.processes = request.processes;
  command.output_bytes = request.output_bytes;
  command.cancelled = request.cancelled;
  KMOSAIC_ASSIGN_OR_RETURN(CommandOutcome outcome, sandbox_->Run(command));
  CommandResult result;
  result.exit_code = outcome.exit_code;
  result.output = std::move(outcome.output);
  result.output_dropped_bytes = outcome.output_dropped_bytes;
  using Limit = CommandResult::Limit;
  if (outcome.was_cancelled) {
    result.limit = Limit::kCancelled;
  } else if (outcome.timed_out) {
    result.limit = Limit::kTime;
  } else if (outcome.memory_exceeded) {
    result.limit = Limit::kMemory;
  } else if (outcome.processes_exceeded) {
    result.limit = Limit::kProcesses;
  } else if (outcome.file_limit) {
    result.limit = Limit::kFileSize;
  }
  return result;
}

}  // namespace kmosaic
