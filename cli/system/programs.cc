#include "cli/system/programs.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

bool IsExecutable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The folder of the toolkit's wheels in the environment of `python`; empty when not there.
std::string WheelToolkit(const std::string& python) {
  std::error_code error;
  fs::path lib = fs::path(python).parent_path().parent_path() / "lib";
  for (const auto& version : fs::directory_iterator(lib, error)) {
    if (!absl::StartsWith(version.path().filename().string(), "python3")) continue;
    for (const auto& part :
         fs::directory_iterator(version.path() / "site-packages" / "nvidia", error)) {
      if (IsExecutable(part.path() / "bin" / "nvcc")) return part.path().string();
    }
  }
  return "";
}

}  // namespace

std::string FindInPath(const Host& host, const std::string& name) {
  std::vector<std::string> folders = absl::StrSplit(host.Env("PATH"), ':', absl::SkipEmpty());
  for (const std::string& folder : folders) {
    fs::path path = fs::path(folder) / name;
    if (IsExecutable(path)) return path.string();
  }
  return "";
}

absl::StatusOr<std::string> FindSisterProgram(const Host& host, const std::string& name) {
  fs::path beside = fs::path(host.executable).parent_path() / name;
  if (std::string home = host.Env("KMOSAIC_HOME"); !home.empty()) {
    fs::path installed = fs::path(home) / "bin" / name;
    if (IsExecutable(installed)) return installed.string();
  }
  if (IsExecutable(beside)) return beside.string();
  if (std::string path = FindInPath(host, name); !path.empty()) return path;
  return absl::NotFoundError(
      absl::StrCat("there is no ", name, " beside this program (", beside.parent_path().string(),
                   "), in KMOSAIC_HOME nor in PATH; build it with ./dev build"));
}

std::optional<Finding> FindPython(const Host& host) {
  if (std::string path = host.Env("KMOSAIC_PYTHON"); !path.empty()) {
    return Finding{path, "KMOSAIC_PYTHON"};
  }
  if (std::string environment = host.Env("VIRTUAL_ENV"); !environment.empty()) {
    fs::path path = fs::path(environment) / "bin" / "python";
    if (IsExecutable(path)) return Finding{path.string(), "the active environment (VIRTUAL_ENV)"};
  }
  for (fs::path folder = fs::path(host.executable).parent_path();
       !folder.empty() && folder != folder.root_path(); folder = folder.parent_path()) {
    fs::path path = folder / ".venv" / "bin" / "python";
    if (IsExecutable(path)) return Finding{path.string(), "the .venv above this program"};
  }
  if (std::string path = FindInPath(host, "python3"); !path.empty()) return Finding{path, "PATH"};
  return std::nullopt;
}

std::optional<Finding> FindToolkit(const Host& host, const std::string& python) {
  if (std::string home = host.Env("CUDA_HOME"); !home.empty()) return Finding{home, "CUDA_HOME"};
  if (std::string nvcc = FindInPath(host, "nvcc"); !nvcc.empty()) {
    std::error_code error;
    fs::path real = fs::canonical(nvcc, error);
    return Finding{(error ? fs::path(nvcc) : real).parent_path().parent_path().string(), "PATH"};
  }
  if (IsExecutable("/usr/local/cuda/bin/nvcc"))
    return Finding{"/usr/local/cuda", "its usual place"};
  if (std::string home = WheelToolkit(python); !python.empty() && !home.empty()) {
    return Finding{home, "the wheels beside Python"};
  }
  return std::nullopt;
}

}  // namespace kmosaic
