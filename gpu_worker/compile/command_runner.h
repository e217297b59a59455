// How the compile stage runs a compiler: confined, limited, with its output captured.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_COMMAND_RUNNER_H_
#define KMOSAIC_GPU_WORKER_COMPILE_COMMAND_RUNNER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kmosaic {

struct CommandRequest {
  std::vector<std::string> argv;
  // Working directory, the only one that can be written besides a private /tmp.
  std::string directory;
  // Further directories that can be read.
  std::vector<std::string> readable;
  absl::Duration wall_limit = absl::Minutes(2);
  // Of the whole process tree.
  uint64_t memory_bytes = 0;
  uint64_t file_bytes = 0;
  uint32_t processes = 0;
  // Output beyond this is read and dropped from the middle.
  uint64_t output_bytes = 4 << 20;
  // Asked now and then; true ends the command.
  std::function<bool()> cancelled = [] { return false; };
};

struct CommandResult {
  // Exit code; 128 + signal number when a signal ended it.
  int exit_code = 0;
  enum class Limit { kNone, kTime, kMemory, kFileSize, kProcesses, kCancelled };
  // Which limit ended it.
  Limit limit = Limit::kNone;
  // Standard output and standard error together.
  std::string output;
  uint64_t output_dropped_bytes = 0;
};

// Thread-safe.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // An error means that the machine or the sandbox failed, never the command.
  virtual absl::StatusOr<CommandResult> Run(const CommandRequest& request) = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_COMMAND_RUNNER_H_
