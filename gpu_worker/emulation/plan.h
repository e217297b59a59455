// How a candidate's sources become a shared library for the emulated device.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_PLAN_H_
#define KMOSAIC_GPU_WORKER_EMULATION_PLAN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/compile/build_plan.h"

namespace kmosaic {

// Where things are; absolute paths, the same inside the compiler's sandbox.
struct EmulationPaths {
  std::string compiler;         // g++ (12 or later)
  std::string headers;          // emulation/include
  std::string torch_headers;    // torch_abi/include
  std::string support_sources;  // emulation/support
  std::string toolkit_headers;  // holds the CUDA toolkit's cuda_runtime.h
  std::string runtime_library;  // libkmosaic_emulation_runtime.so
  // Build directory of a PlanSupport that has been run.
  std::string support;
};

struct EmulationOptions {
  // Count loads and stores; several times slower to run.
  bool count = false;
};

// FailedPrecondition names what is not there and what to do about it. Needs no nvcc, only the
// toolkit's headers.
absl::Status CheckEmulationPaths(const EmulationPaths& paths);

// The precompiled headers and the CUDA runtime's entry points, built once per worker: run it in a
// directory of its own and name that as EmulationPaths::support. Takes about ten seconds of one
// core and 350 MB.
absl::StatusOr<BuildPlan> PlanSupport(const EmulationPaths& paths);

// Changes whenever a support directory or an emulated library must be built anew: SHA-256 (hex)
// of the compiler's version text (g++ --version), the toolkit's version and all our headers.
absl::StatusOr<std::string> EmulationToolchainKey(const EmulationPaths& paths,
                                                  std::string_view compiler_version);

// InvalidArgument: the source is at fault (a COMPILE_ERROR with this text). Unimplemented: it
// uses what the emulated device does not have (UNSUPPORTED).
absl::StatusOr<BuildPlan> PlanEmulated(const ExtensionSource& source, const EmulationPaths& paths,
                                       const EmulationOptions& options = {});

// The same for the `cuda` contract: one .cu whose extern "C" entries are looked up by name.
absl::StatusOr<BuildPlan> PlanEmulatedCuda(std::string_view source, const EmulationPaths& paths,
                                           const EmulationOptions& options = {});

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_PLAN_H_
