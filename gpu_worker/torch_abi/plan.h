// How a candidate's sources become a shared library for a CUDA device, compiled by nvcc against
// the light torch headers.
#ifndef KMOSAIC_GPU_WORKER_TORCH_ABI_PLAN_H_
#define KMOSAIC_GPU_WORKER_TORCH_ABI_PLAN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu_worker/compile/build_plan.h"

namespace kmosaic {

// Where nvcc and its headers are; absolute paths, the same inside the compiler's sandbox.
struct LightToolkit {
  std::string nvcc;
  std::string include;        // the toolkit's headers
  std::string library;        // the directory with libcudart
  std::string host_compiler;  // g++
  std::string torch_headers;  // torch_abi/include
};

// FailedPrecondition names what is not there.
absl::Status CheckLightToolkit(const LightToolkit& toolkit);

// arch: "sm_90" and the like. InvalidArgument when it is none.
absl::StatusOr<BuildPlan> PlanLight(const ExtensionSource& source, const LightToolkit& toolkit,
                                    std::string_view arch);

// The `cuda` contract: one .cu with extern "C" entries.
absl::StatusOr<BuildPlan> PlanLightCuda(std::string_view source, const LightToolkit& toolkit,
                                        std::string_view arch);

// Did a compile against the light headers fail because of what they lack (a torch header, type,
// function or Tensor method that the real headers of torch have), and not for a fault of the
// source? torch_include: the installed torch's include directory, or empty when there is none.
// On true the caller goes on with the full headers, or says UNSUPPORTED.
bool LacksTorchApi(std::string_view compiler_output, const std::string& torch_include);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_TORCH_ABI_PLAN_H_
