// The translation units that torch's load_inline would make of an extension's sources.
#ifndef KMOSAIC_GPU_WORKER_TORCH_ABI_SOURCES_H_
#define KMOSAIC_GPU_WORKER_TORCH_ABI_SOURCES_H_

#include <string>
#include <vector>

#include "gpu_worker/compile/build_plan.h"

namespace kmosaic {

struct TorchSources {
  std::string cpp;   // empty when there is nothing to compile
  std::string cuda;  // empty when there is nothing to compile
};

// Concatenates the sources, puts torch's includes before each and the binding of `functions`
// behind the C++ part. Line numbers in errors are those of the result.
TorchSources ComposeTorchSources(const ExtensionSource& source);

// Of a candidate's compiler flags those that change what its sources mean: definitions (-D, -U)
// and the language level. Optimisation, architecture and paths are the system's to decide.
std::vector<std::string> KeptFlags(const std::vector<std::string>& flags);

// What load_inline's own build defines for CUDA sources: operators on half and bfloat16 are
// torch's (c10::Half), the toolkit's are away.
const std::vector<std::string>& TorchHalfDefinitions();

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_TORCH_ABI_SOURCES_H_
