// What has to be run to turn one extension's sources into a shared library.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_BUILD_PLAN_H_
#define KMOSAIC_GPU_WORKER_COMPILE_BUILD_PLAN_H_

#include <string>
#include <vector>

namespace kmosaic {

// The arguments of one call of torch.utils.cpp_extension.load_inline or load, as
// recorded in the collect process. All text is the candidate's own.
struct ExtensionSource {
  // SHA-256 (hex) of the canonical JSON of the other fields.
  std::string key;
  std::string name;
  std::vector<std::string> cpp_sources;
  std::vector<std::string> cuda_sources;
  // Names of the functions to bind; empty when the sources hold their own
  // PYBIND11_MODULE.
  std::vector<std::string> functions;
  std::vector<std::string> cflags;
  std::vector<std::string> cuda_cflags;
  std::vector<std::string> ldflags;
};

// A pure description: makes no file and runs nothing.
struct BuildPlan {
  struct File {
    std::string name;  // relative to the build directory
    std::string text;
  };
  std::vector<File> files;
  // Each is an argv, run in the build directory.
  std::vector<std::vector<std::string>> commands;
  // The commands but the last may run side by side.
  bool parallel = false;
  // Name of the shared library that the last command leaves in the build directory.
  std::string output;
  // Directories that the compilers must be able to read.
  std::vector<std::string> readable;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_BUILD_PLAN_H_
