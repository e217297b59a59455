// Prints how a CUDA source is built for the emulated device, as JSON, for the tests of the
// guidance documents' samples: {"files": {NAME: TEXT}, "commands": [[WORD...]...], "output": NAME}.
//
//   emulated_plan support SOURCE_ROOT COMPILER TOOLKIT_HEADERS RUNTIME_LIBRARY
//   emulated_plan cuda SOURCE_ROOT COMPILER TOOLKIT_HEADERS RUNTIME_LIBRARY SUPPORT FILE.cu
//
// Exit codes: 0; 1 the source or a path is wrong, 3 the device lacks what the source uses; the
// reason is on standard error.
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "gpu_worker/emulation/plan.h"

namespace kmosaic {
namespace {

int Print(const absl::StatusOr<BuildPlan>& plan) {
  if (!plan.ok()) {
    std::cerr << plan.status().message() << "\n";
    return absl::IsUnimplemented(plan.status()) ? 3 : 1;
  }
  nlohmann::json out = {{"commands", plan->commands}, {"output", plan->output}};
  out["files"] = nlohmann::json::object();
  for (const BuildPlan::File& file : plan->files) out["files"][file.name] = file.text;
  std::cout << out.dump() << "\n";
  return 0;
}

int Run(int argc, char** argv) {
  const bool support = argc == 6 && std::strcmp(argv[1], "support") == 0;
  const bool cuda = argc == 8 && std::strcmp(argv[1], "cuda") == 0;
  if (!support && !cuda) {
    std::cerr << "usage: emulated_plan support|cuda SOURCE_ROOT COMPILER TOOLKIT_HEADERS "
                 "RUNTIME_LIBRARY [SUPPORT FILE.cu]\n";
    return 1;
  }
  const std::string worker = std::string(argv[2]) + "/gpu_worker/";
  EmulationPaths paths;
  paths.compiler = argv[3];
  paths.headers = worker + "emulation/include";
  paths.torch_headers = worker + "torch_abi/include";
  paths.support_sources = worker + "emulation/support";
  paths.toolkit_headers = argv[4];
  paths.runtime_library = argv[5];
  if (support) return Print(PlanSupport(paths));
  paths.support = argv[6];
  std::ifstream in(argv[7], std::ios::binary);
  const std::string source{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) {
    std::cerr << "cannot read " << argv[7] << "\n";
    return 1;
  }
  return Print(PlanEmulatedCuda(source, paths));
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) { return kmosaic::Run(argc, argv); }
