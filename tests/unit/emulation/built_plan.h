// Runs build plans at test time.
#ifndef KMOSAIC_TESTS_UNIT_EMULATION_BUILT_PLAN_H_
#define KMOSAIC_TESTS_UNIT_EMULATION_BUILT_PLAN_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#include "gpu_worker/compile/build_plan.h"
#include "gpu_worker/emulation/plan.h"

namespace kmosaic {

inline std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string ReadTestFile(const std::string& relative) {
  return ReadAll(std::filesystem::path(KMOSAIC_TEST_SOURCE_DIR) / relative);
}

// A directory that goes with this object.
class BuildDirectory {
 public:
  BuildDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "kmosaic_plan_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~BuildDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  BuildDirectory(const BuildDirectory&) = delete;
  BuildDirectory& operator=(const BuildDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // The compilers' messages when a command fails; empty when all succeed.
  std::string ErrorsOf(const BuildPlan& plan) const {
    for (const auto& file : plan.files) std::ofstream(path_ / file.name) << file.text;
    for (const auto& command : plan.commands) {
      std::string line = "cd '" + path_.string() + "' &&";
      for (const std::string& word : command) line += " '" + word + "'";
      if (std::system((line + " >log 2>&1").c_str()) != 0)
        return line + "\n" + ReadAll(path_ / "log");
    }
    return "";
  }

  // Path of the output.
  std::string Build(const BuildPlan& plan) const {
    const std::string errors = ErrorsOf(plan);
    if (!errors.empty()) throw std::runtime_error(errors);
    return (path_ / plan.output).string();
  }

 private:
  std::filesystem::path path_;
};

// Paths in the source tree, with a support directory built once; nullopt without the CUDA
// toolkit's headers.
inline std::optional<EmulationPaths> TestPaths() {
  static const std::optional<EmulationPaths> built = []() -> std::optional<EmulationPaths> {
    const std::string root = KMOSAIC_TEST_SOURCE_DIR "/gpu_worker/";
    EmulationPaths paths;
    paths.compiler = KMOSAIC_TEST_COMPILER;
    paths.headers = root + "emulation/include";
    paths.torch_headers = root + "torch_abi/include";
    paths.support_sources = root + "emulation/support";
    paths.runtime_library = KMOSAIC_TEST_RUNTIME;
    const char* home = std::getenv("CUDA_HOME");
    paths.toolkit_headers = std::string(home == nullptr ? "/usr/local/cuda" : home) + "/include";
    if (!std::filesystem::exists(paths.toolkit_headers + "/cuda_runtime.h")) return std::nullopt;
    static const BuildDirectory support;
    const auto plan = PlanSupport(paths);
    if (!plan.ok()) throw std::runtime_error(std::string(plan.status().message()));
    support.Build(*plan);
    paths.support = support.path().string();
    return paths;
  }();
  return built;
}

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_EMULATION_BUILT_PLAN_H_
