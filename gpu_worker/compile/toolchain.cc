#include "gpu_worker/compile/toolchain.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "common/lifecycle/child_process.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kVersionTimeout = absl::Seconds(20);

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FindInPath(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return access(program.c_str(), X_OK) == 0 ? program : "";
  }
  for (const std::string& directory :
       std::vector<std::string>(absl::StrSplit(Environment("PATH"), ':', absl::SkipEmpty()))) {
    std::string path = absl::StrCat(directory, "/", program);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

// All of what `argv` prints, when it ends well.
absl::StatusOr<std::string> OutputOf(std::vector<std::string> argv) {
  ChildProcess::Options options;
  options.argv = std::move(argv);
  options.pipe_stdout = true;
  KMOSAIC_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(options));
  std::string output;
  while (true) {
    auto line = child.ReadLine(kVersionTimeout);
    if (absl::IsUnavailable(line.status())) break;
    if (!line.ok()) return line.status();
    absl::StrAppend(&output, *line, "\n");
  }
  std::optional<int> exit = child.Wait(kVersionTimeout);
  if (exit != 0) {
    return absl::UnavailableError(absl::StrCat(options.argv[0], " does not tell its version"));
  }
  return output;
}

// "13.0.88" of "Cuda compilation tools, release 13.0, V13.0.88".
std::string NvccVersion(const std::string& output) {
  size_t at = output.find(", V");
  if (at == std::string::npos) return "";
  size_t end = output.find_first_not_of("0123456789.", at + 3);
  return output.substr(at + 3, end == std::string::npos ? end : end - at - 3);
}

// The runtime's headers include the compiler's, which wheels of CUDA 12 put elsewhere.
bool HasHeaders(const fs::path& home) {
  std::error_code error;
  return fs::exists(home / "include" / "cuda_runtime_api.h", error) &&
         fs::exists(home / "include" / "crt" / "host_defines.h", error);
}

// Toolkits that pip installed beside the interpreter.
std::vector<fs::path> Wheels(const std::string& python) {
  std::vector<fs::path> homes;
  if (python.empty()) return homes;
  fs::path lib = fs::path(python).parent_path().parent_path() / "lib";
  std::error_code error;
  for (const auto& version : fs::directory_iterator(lib, error)) {
    fs::path nvidia = version.path() / "site-packages" / "nvidia";
    for (const auto& home : fs::directory_iterator(nvidia, error)) {
      if (home.path().filename().string().rfind("cu", 0) == 0) homes.push_back(home.path());
    }
  }
  std::sort(homes.rbegin(), homes.rend());
  return homes;
}

std::string FindCudaHome(const ToolchainSearch& search) {
  std::vector<fs::path> candidates;
  if (!search.cuda_home.empty()) {
    candidates = {search.cuda_home};
  } else {
    if (std::string home = Environment("CUDA_HOME"); !home.empty()) candidates.push_back(home);
    std::string nvcc = FindInPath("nvcc");
    std::error_code error;
    if (fs::path real = fs::canonical(nvcc, error); !error) {
      candidates.push_back(real.parent_path().parent_path());
    }
    for (fs::path& home : Wheels(search.python)) candidates.push_back(std::move(home));
    candidates.push_back("/usr/local/cuda");
  }
  for (const fs::path& home : candidates) {
    std::error_code error;
    fs::path real = fs::canonical(home, error);
    if (!error && HasHeaders(real)) return real.string();
  }
  return "";
}

}  // namespace

std::string Toolchain::HostName() const { return absl::StrCat("g++ ", gxx_version); }

std::string Toolchain::CudaName() const {
  return absl::StrCat("nvcc ", nvcc_version, ", g++ ", gxx_version);
}

absl::StatusOr<Toolchain> FindToolchain(const ToolchainSearch& search) {
  Toolchain found;
  found.gxx = FindInPath(search.gxx.empty() ? "g++" : search.gxx);
  if (found.gxx.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no C++ compiler", search.gxx.empty() ? "" : " at " + search.gxx,
                     ": install g++ (version 10 or later) or name one with --gxx"));
  }
  KMOSAIC_ASSIGN_OR_RETURN(std::string version, OutputOf({found.gxx, "-dumpfullversion"}));
  found.gxx_version = version.substr(0, version.find('\n'));

  found.cuda_home = FindCudaHome(search);
  if (found.cuda_home.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no CUDA headers (cuda_runtime_api.h and crt/host_defines.h)",
        search.cuda_home.empty() ? std::string() : " below " + search.cuda_home,
        ": install the CUDA toolkit, or the wheels nvidia-cuda-runtime and nvidia-cuda-nvcc into "
        "the worker's Python, or name a toolkit with --cuda-home"));
  }
  found.cuda_include = found.cuda_home + "/include";
  std::string nvcc = found.cuda_home + "/bin/nvcc";
  if (access(nvcc.c_str(), X_OK) == 0) {
    // A toolkit of wheels may lack the bits that make nvcc run; the emulated device does
    // not need it.
    if (auto output = OutputOf({nvcc, "--version"}); output.ok()) {
      found.nvcc = nvcc;
      found.nvcc_version = NvccVersion(*output);
    }
  }
  return found;
}

std::string FindTorchInclude(const std::string& python) {
  std::error_code error;
  for (const char* packages : {"site-packages", "dist-packages"}) {
    fs::path lib = fs::path(python).parent_path().parent_path() / "lib";
    for (const auto& version : fs::directory_iterator(lib, error)) {
      fs::path include = version.path() / packages / "torch" / "include";
      if (fs::is_directory(include, error)) return include.string();
    }
  }
  return "";
}

std::string DigestHeaders(const std::vector<std::string>& directories, bool by_content) {
  Sha256 digest;
  for (const std::string& directory : directories) {
    std::vector<fs::path> files;
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(directory, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code ignored;
      if (it->is_regular_file(ignored)) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      std::error_code ignored;
      digest.Update(absl::StrCat(file.lexically_relative(directory).string(), "\n",
                                 fs::file_size(file, ignored), "\n"));
      if (!by_content) continue;
      std::ifstream in(file, std::ios::binary);
      digest.Update(std::string(std::istreambuf_iterator<char>(in), {}));
    }
    digest.Update("\n");
  }
  return digest.FinishHex();
}

}  // namespace kmosaic
