// Prints how a sample of a guidance document is built, as JSON, for test_samples.py:
// {"files": {NAME: TEXT}, "commands": [[WORD...]...], "output": NAME}.
//
//   sample_plan KIND SOURCE_ROOT COMPILER TOOLKIT RUNTIME_LIBRARY [SUPPORT FILE]
//
//   support  what every library for the emulated device needs; no SUPPORT and FILE
//   cuda     FILE, a .cu, for the emulated device
//   torch    FILE, the arguments of load_inline as JSON, for the emulated device
//   light    the same for a CUDA device, compiled by nvcc against the light torch headers
//
// Exit codes: 0; 1 the source or a path is wrong, 3 the device lacks what the source uses; the
// reason is on standard error.
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "gpu_worker/emulation/plan.h"
#include "gpu_worker/torch_abi/plan.h"

namespace kmosaic {
namespace {

int Fail(const std::string& why, int code = 1) {
  std::cerr << why << "\n";
  return code;
}

int Print(const absl::StatusOr<BuildPlan>& plan) {
  if (!plan.ok()) {
    return Fail(std::string(plan.status().message()), absl::IsUnimplemented(plan.status()) ? 3 : 1);
  }
  nlohmann::json out = {{"commands", plan->commands}, {"output", plan->output}};
  out["files"] = nlohmann::json::object();
  for (const BuildPlan::File& file : plan->files) out["files"][file.name] = file.text;
  std::cout << out.dump() << "\n";
  return 0;
}

ExtensionSource ParseRequest(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  ExtensionSource source;
  source.key = json.at("key");
  source.name = json.at("name");
  source.cpp_sources = json.at("cpp_sources");
  source.cuda_sources = json.at("cuda_sources");
  source.functions = json.at("functions");
  return source;
}

int Run(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (argc != (kind == "support" ? 6 : 8)) {
    return Fail(
        "usage: sample_plan support|cuda|torch|light SOURCE_ROOT COMPILER TOOLKIT RUNTIME_LIBRARY "
        "[SUPPORT FILE]");
  }
  const std::string worker = std::string(argv[2]) + "/gpu_worker/";
  const std::string toolkit = argv[4];
  EmulationPaths paths;
  paths.compiler = argv[3];
  paths.headers = worker + "emulation/include";
  paths.torch_headers = worker + "torch_abi/include";
  paths.support_sources = worker + "emulation/support";
  paths.toolkit_headers = toolkit + "/include";
  paths.runtime_library = argv[5];
  if (kind == "support") return Print(PlanSupport(paths));
  paths.support = argv[6];
  std::ifstream in(argv[7], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) return Fail("cannot read " + std::string(argv[7]));
  if (kind == "cuda") return Print(PlanEmulatedCuda(text, paths));
  if (kind == "torch") return Print(PlanEmulated(ParseRequest(text), paths));
  if (kind != "light") return Fail("unknown kind " + kind);
  LightToolkit light;
  light.nvcc = toolkit + "/bin/nvcc";
  light.include = paths.toolkit_headers;
  light.library = toolkit + "/lib";
  light.host_compiler = paths.compiler;
  light.torch_headers = paths.torch_headers;
  return Print(PlanLight(ParseRequest(text), light, "sm_90"));
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) { return kmosaic::Run(argc, argv); }
