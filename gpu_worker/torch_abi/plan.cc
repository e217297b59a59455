#include "gpu_worker/torch_abi/plan.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpu_worker/torch_abi/sources.h"

namespace kmosaic {

namespace {

namespace fs = std::filesystem;

void Append(std::vector<std::string>* to, const std::vector<std::string>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

absl::Status CheckArch(std::string_view arch) {
  const bool well_formed = arch.starts_with("sm_") && arch.size() >= 5 && arch.size() <= 7 &&
                           std::all_of(arch.begin() + 3, arch.end(), [](char c) {
                             return (c >= '0' && c <= '9') || c == 'a' || c == 'f';
                           });
  if (well_formed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(arch), "' is no architecture; write sm_90 or the like"));
}

// The flags of a candidate that its speed and results may depend on.
std::vector<std::string> KeptNvccFlags(const std::vector<std::string>& flags) {
  static constexpr std::string_view kKnown[] = {"--use_fast_math",   "-use_fast_math",
                                                "--ftz=true",        "-ftz=true",
                                                "--fmad=false",      "-fmad=false",
                                                "--fmad=true",       "--prec-div=false",
                                                "--prec-sqrt=false", "--expt-extended-lambda",
                                                "--extended-lambda", "-extended-lambda"};
  std::vector<std::string> kept = KeptFlags(flags);
  for (const std::string& flag : flags) {
    if (std::find(std::begin(kKnown), std::end(kKnown), flag) != std::end(kKnown) ||
        flag.starts_with("--maxrregcount=") || flag.starts_with("-maxrregcount=")) {
      kept.push_back(flag);
    }
  }
  return kept;
}

std::vector<std::string> NvccCompile(const LightToolkit& toolkit, std::string_view arch,
                                     const std::vector<std::string>& flags,
                                     const std::string& source, const std::string& object) {
  std::vector<std::string> command = {toolkit.nvcc, "-ccbin", toolkit.host_compiler};
  Append(&command, {absl::StrCat("-arch=", std::string(arch)), "-O3", "-w"});
  const bool has_level = std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
    return flag.starts_with("-std=");
  });
  if (!has_level) command.emplace_back("-std=c++17");
  Append(&command, TorchHalfDefinitions());
  command.emplace_back("--expt-relaxed-constexpr");
  Append(&command, flags);
  Append(&command,
         {"-Xcompiler", "-fPIC,-fvisibility=hidden,-fno-gnu-unique", "-I" + toolkit.torch_headers,
          "-I" + toolkit.include, "-c", source, "-o", object});
  return command;
}

// Sends the library's launches, and what could find them by name, through its gate.
void AppendGateWraps(std::vector<std::string>* command) {
  static constexpr std::string_view kLaunches[] = {
      "cudaLaunchKernel",          "__cudaLaunchKernel", "cudaLaunchCooperativeKernel",
      "cudaLaunchKernelExC",       "cudaGraphLaunch",    "cuLaunchKernel",
      "cuLaunchCooperativeKernel", "cuLaunchKernelEx",   "cuGraphLaunch"};
  static constexpr std::string_view kLookups[] = {"dlsym", "cudaGetDriverEntryPoint",
                                                  "cudaGetDriverEntryPointByVersion",
                                                  "cuGetProcAddress_v2"};
  std::string wraps;
  for (std::string_view name : kLaunches) {
    const std::string symbol(name);
    absl::StrAppend(&wraps, "--wrap=", symbol, ",--wrap=", symbol, "_ptsz,");
  }
  for (std::string_view name : kLookups) {
    absl::StrAppend(&wraps, "--wrap=", std::string(name), ",");
  }
  wraps.pop_back();
  Append(command, {"-Xlinker", wraps});
}

// Of the folder of the headers, whose digest every artifact's key holds.
std::string GateSource(const LightToolkit& toolkit) {
  return toolkit.torch_headers + "/kmosaic_torch/launch_gate.c";
}

std::vector<std::string> CompileGate(const LightToolkit& toolkit) {
  return {toolkit.host_compiler,
          "-x",
          "c",
          "-O2",
          "-w",
          "-fPIC",
          "-fvisibility=hidden",
          "-c",
          GateSource(toolkit),
          "-o",
          "launch_gate.o"};
}

std::vector<std::string> NvccLink(const LightToolkit& toolkit, std::string_view arch,
                                  const std::vector<std::string>& objects,
                                  const std::vector<std::string>& libraries,
                                  const std::string& output) {
  // The process has torch's own CUDA runtime; the extension must use that one.
  std::vector<std::string> command = {toolkit.nvcc, "-ccbin", toolkit.host_compiler};
  Append(&command,
         {absl::StrCat("-arch=", std::string(arch)), "-shared", "-cudart=shared", "-o", output});
  Append(&command, objects);
  command.push_back("launch_gate.o");
  command.push_back("-L" + toolkit.library);
  Append(&command, libraries);
  AppendGateWraps(&command);
  return command;
}

std::vector<std::string> Readable(const LightToolkit& toolkit) {
  return {fs::path(toolkit.nvcc).parent_path().parent_path().string(), toolkit.include,
          toolkit.library, toolkit.torch_headers};
}

// -lcublas and the like, where the toolkit has them.
std::vector<std::string> KeptLibraries(const std::vector<std::string>& flags) {
  static constexpr std::string_view kKnown[] = {"-lcublas",   "-lcublasLt", "-lcudart", "-lcurand",
                                                "-lcusparse", "-lcusolver", "-lcufft"};
  std::vector<std::string> kept;
  for (const std::string& flag : flags) {
    if (std::find(std::begin(kKnown), std::end(kKnown), flag) != std::end(kKnown)) {
      kept.push_back(flag);
    }
  }
  return kept;
}

}  // namespace

absl::Status CheckLightToolkit(const LightToolkit& toolkit) {
  const std::pair<std::string, std::string_view> required[] = {
      {toolkit.nvcc, "the CUDA compiler"},
      {toolkit.include + "/cuda_runtime.h", "the CUDA toolkit's headers"},
      {toolkit.host_compiler, "a C++ compiler for nvcc"},
      {toolkit.torch_headers + "/kmosaic_torch/abi.h", "the light torch headers"},
  };
  for (const auto& [path, what] : required) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "compiling for a CUDA device needs ", std::string(what), ", but there is no file ", path,
          "; install the CUDA toolkit or its wheels and set CUDA_HOME"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BuildPlan> PlanLight(const ExtensionSource& source, const LightToolkit& toolkit,
                                    std::string_view arch) {
  if (absl::Status status = CheckArch(arch); !status.ok()) return status;
  const TorchSources sources = ComposeTorchSources(source);
  BuildPlan plan;
  std::vector<std::string> objects;
  if (!sources.cuda.empty()) {
    plan.files.push_back({"cuda.cu", sources.cuda});
    plan.commands.push_back(
        NvccCompile(toolkit, arch, KeptNvccFlags(source.cuda_cflags), "cuda.cu", "cuda.o"));
    objects.push_back("cuda.o");
  }
  if (!sources.cpp.empty()) {
    plan.files.push_back({"main.cpp", sources.cpp});
    std::vector<std::string> command = {
        toolkit.host_compiler, "-std=c++17",     "-O2", "-w", "-fPIC",
        "-fvisibility=hidden", "-fno-gnu-unique"};
    Append(&command, KeptFlags(source.cflags));
    Append(&command, {"-I" + toolkit.torch_headers, "-isystem", toolkit.include, "-c", "main.cpp",
                      "-o", "main.o"});
    plan.commands.push_back(std::move(command));
    objects.push_back("main.o");
  }
  plan.commands.push_back(CompileGate(toolkit));
  plan.output = "extension.so";
  plan.commands.push_back(
      NvccLink(toolkit, arch, objects, KeptLibraries(source.ldflags), plan.output));
  plan.parallel = true;
  plan.readable = Readable(toolkit);
  return plan;
}

absl::StatusOr<BuildPlan> PlanLightCuda(std::string_view source, const LightToolkit& toolkit,
                                        std::string_view arch) {
  if (absl::Status status = CheckArch(arch); !status.ok()) return status;
  BuildPlan plan;
  plan.files.push_back({"kernel.cu", std::string(source)});
  std::vector<std::string> command = {toolkit.nvcc, "-ccbin", toolkit.host_compiler};
  Append(&command, {absl::StrCat("-arch=", std::string(arch)), "-O3", "-w", "-std=c++17",
                    "--expt-relaxed-constexpr", "-shared", "-cudart=shared", "-Xcompiler", "-fPIC",
                    "-I" + toolkit.include, "-L" + toolkit.library, "kernel.cu", "launch_gate.o",
                    "-o", "extension.so"});
  AppendGateWraps(&command);
  plan.commands = {CompileGate(toolkit), std::move(command)};
  plan.output = "extension.so";
  plan.readable = Readable(toolkit);
  return plan;
}

bool LacksTorchApi(std::string_view compiler_output, const std::string& torch_include) {
  const std::string output(compiler_output.substr(0, 256 * 1024));
  const auto exists = [&](const std::string& relative) {
    std::error_code error;
    return !torch_include.empty() && relative.find("..") == std::string::npos &&
           fs::exists(fs::path(torch_include) / relative, error);
  };
  const auto any = [&](const std::regex& pattern, auto accept) {
    for (std::sregex_iterator it(output.begin(), output.end(), pattern), end; it != end; ++it) {
      if (accept((*it)[1].str())) return true;
    }
    return false;
  };
  // g++: "ATen/foo.h: No such file or directory"; nvcc: cannot open source file "ATen/foo.h".
  static const std::regex kHeader(
      R"re(((?:torch|ATen|c10|pybind11)/[\w/.]+)(?:: No such file|"))re");
  if (any(kHeader, [&](const std::string& name) {
        return exists(name) || exists("torch/csrc/api/include/" + name);
      })) {
    return true;
  }
  // Names that torch's headers have and ours do not: an operation has a header of its own.
  static const std::regex kMember(
      R"re((?:has no member (?:named )?|namespace "(?:torch|at)" has no member )[^\w]*(\w+))re");
  static const std::regex kNotMember(R"re(\W(\w+)\W+ is not a member of \W(?:torch|at|c10)\W)re");
  const auto is_operation = [&](const std::string& name) {
    return exists("ATen/ops/" + name + ".h");
  };
  return any(kMember, is_operation) || any(kNotMember, is_operation);
}

}  // namespace kmosaic
