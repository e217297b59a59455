// Runs a compiler on source text that nobody trusts.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_COMPILER_SANDBOX_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_COMPILER_SANDBOX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/sandbox/memory_guard.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

struct SandboxedCommand {
  std::vector<std::string> argv;  // argv[0] is a path
  // Working directory, shown at its own path; the only one that can be written besides
  // a private /tmp.
  std::string directory;
  // Further absolute paths that can be read, besides the system's programs and libraries.
  std::vector<std::string> readable;
  // The program's whole environment besides PATH, HOME, TMPDIR and LANG: "NAME=value".
  std::vector<std::string> env;
  absl::Duration wall_limit = absl::Minutes(2);
  uint64_t memory_bytes = uint64_t{8} << 30;  // of all processes together
  uint64_t processes = 256;                   // threads included
  uint64_t file_bytes = uint64_t{512} << 20;  // largest file
  uint64_t tmp_bytes = uint64_t{1} << 30;
  // Standard output and error together; half of it is kept from the start, half from the
  // end.
  uint64_t output_bytes = 256 << 10;
  // Asked every 50 ms; true ends the command.
  std::function<bool()> cancelled;
};

struct CommandOutcome {
  int exit_code = 0;      // 128 + signal_number when a signal ended it
  int signal_number = 0;  // 0: it exited
  bool timed_out = false;
  bool memory_exceeded = false;
  bool processes_exceeded = false;
  // Died of, or left behind, a file of the greatest size.
  bool file_limit = false;
  bool was_cancelled = false;
  bool sandboxed = true;
  std::string output;  // valid UTF-8
  uint64_t output_dropped_bytes = 0;
  absl::Duration wall;

  bool succeeded() const { return exit_code == 0 && !timed_out && !was_cancelled; }
};

// Namespaces for users, processes, network, IPC, host name and mounts, no capabilities,
// the seccomp filter of MakeSeccompProgram, read-only root, by bubblewrap. Thread-safe.
class CompilerSandbox {
 public:
  // FAILED_PRECONDITION says what to install or allow where the sandbox cannot be made
  // (it is tried). `unsandboxed` is the explicit override: limits only, and every outcome
  // says so. `guard` outlives this object.
  static absl::StatusOr<std::unique_ptr<CompilerSandbox>> Create(MemoryGuard* guard,
                                                                 bool unsandboxed);

  // Blocks until the command and all that it started are gone. An error means that the
  // machine or the sandbox failed, never the command.
  absl::StatusOr<CommandOutcome> Run(const SandboxedCommand& command) const;

  bool unsandboxed() const { return unsandboxed_; }

 private:
  CompilerSandbox(MemoryGuard* guard, bool unsandboxed)
      : guard_(guard), unsandboxed_(unsandboxed) {}

  MemoryGuard* const guard_;
  const bool unsandboxed_;
  std::string bwrap_;
  UniqueFd seccomp_;
};

// The arguments of bwrap for `command`; descriptors 3 (seccomp program) and 4 (status) are
// open in it. A pure function but for looking which system folders are links.
std::vector<std::string> BubblewrapArguments(const std::string& bwrap,
                                             const SandboxedCommand& command);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_COMPILER_SANDBOX_H_
