// The compilers and headers of this machine.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_TOOLCHAIN_H_
#define KMOSAIC_GPU_WORKER_COMPILE_TOOLCHAIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kmosaic {

struct Toolchain {
  std::string gxx;          // full path
  std::string gxx_version;  // "12.2.0"
  // Empty where there is none.
  std::string nvcc;
  std::string nvcc_version;  // "13.0.88"
  std::string cuda_home;
  std::string cuda_include;

  // "g++ 12.2.0" or "nvcc 13.0.88, g++ 12.2.0", for reports and cache keys.
  std::string HostName() const;
  std::string CudaName() const;
};

struct ToolchainSearch {
  // Each may be empty: then g++ and nvcc come from PATH, and a toolkit from CUDA_HOME,
  // from nvcc in PATH, from wheels beside `python` (site-packages/nvidia/cu*), from
  // /usr/local/cuda, in this order.
  std::string gxx;
  std::string cuda_home;
  std::string python;
};

// NOT_FOUND when there is no g++ or no CUDA headers (they give the types that kernels
// use, on the emulated device too); the message says what to install.
absl::StatusOr<Toolchain> FindToolchain(const ToolchainSearch& search);

// include directory of the torch that `python` (a path) imports; empty when not found.
std::string FindTorchInclude(const std::string& python);

// SHA-256 over the files below `directories`: by content where `by_content`, else by
// relative name and size (a toolkit's headers are fixed by its version, their sizes are
// only a guard).
std::string DigestHeaders(const std::vector<std::string>& directories, bool by_content);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_TOOLCHAIN_H_
