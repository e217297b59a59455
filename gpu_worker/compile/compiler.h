// Runs build plans: through the cache, in a bounded number of slots, in the sandbox.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_COMPILER_H_
#define KMOSAIC_GPU_WORKER_COMPILE_COMPILER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gpu_worker/compile/artifact_cache.h"
#include "gpu_worker/compile/build_plan.h"
#include "gpu_worker/compile/command_runner.h"
#include "gpu_worker/compile/slots.h"

namespace kmosaic {

struct PlannedExtension {
  ExtensionSource source;
  BuildPlan plan;
  // Why there is no plan: it fails to compile with this text.
  std::string refusal;
};

// Everything that decides what the artifact is.
struct CompileJob {
  std::string device;     // "emulated", "cuda"
  std::string contract;   // "modelnew", "cuda"
  std::string arch;       // "sm_90a"; empty on the emulated device
  std::string toolchain;  // compilers with versions
  // Of the headers that the plans include.
  std::string header_digest;
  std::vector<PlannedExtension> extensions;
};

// SHA-256 over a job: the cache's key.
std::string JobKey(const CompileJob& job);

// Thread-safe.
class Compiler {
 public:
  struct Options {
    ArtifactCache* cache = nullptr;  // must outlive the compiler
    CommandRunner* runner = nullptr;
    const Clock* clock = nullptr;
    // Builds at a time.
    uint32_t slots = 1;
    absl::Duration wall_limit = absl::Minutes(2);
    uint64_t memory_bytes = uint64_t{4} << 30;
    uint64_t file_bytes = uint64_t{512} << 20;
    uint32_t processes = 128;
    // Of the log in a report.
    size_t log_bytes = 16 << 10;
  };
  explicit Compiler(Options options);

  // The artifact of `job`, or why there is none (outcome.failure); the directory holds
  // manifest.json and the libraries. Where some of several extensions do not compile, the
  // artifact has the others, and the manifest an "error" in place of a "library". An error
  // status is machine trouble (or CANCELLED).
  absl::StatusOr<CachedBuild> Compile(const CompileJob& job,
                                      const std::function<bool()>& cancelled);

  Slots& slots() { return slots_; }

 private:
  absl::StatusOr<BuildOutcome> Build(const CompileJob& job, const std::string& directory,
                                     const std::function<bool()>& cancelled);
  // Fills `work`; failure, reason and log of the outcome.
  absl::StatusOr<BuildOutcome> BuildExtension(const PlannedExtension& extension,
                                              const std::string& work,
                                              const std::function<bool()>& cancelled);

  const Options options_;
  Slots slots_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_COMPILER_H_
