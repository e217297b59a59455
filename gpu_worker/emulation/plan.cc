#include "gpu_worker/emulation/plan.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "gpu_worker/emulation/rewrite_cuda.h"
#include "gpu_worker/emulation/unsupported.h"
#include "gpu_worker/torch_abi/sources.h"

namespace kmosaic {

namespace {

namespace fs = std::filesystem;

constexpr char kSupportObject[] = "kmosaic_support.o";

// What is included before a source, precompiled: one header for each kind of compile, since a
// precompiled header only serves the flags that it was made with.
struct Prelude {
  bool torch;    // an extension for torch, else a plain .cu
  bool counted;  // device code whose accesses are counted

  std::string name() const {
    return absl::StrCat("kmosaic_", torch ? "torch" : "cuda", counted ? "_counted" : "", ".h");
  }
  // Only what nvcc gives, or torch/extension.h has: a source that forgets an include must fail
  // here as it does there.
  std::string text() const {
    return absl::StrCat("#pragma once\n#include <cuda_runtime.h>\n",
                        torch ? "#include <kmosaic_torch/module.h>\n"
                                "#include <kmosaic_torch/dispatch.h>\n"
                              : "");
  }
};
constexpr Prelude kPreludes[] = {{true, false}, {true, true}, {false, false}, {false, true}};

// Device arithmetic wraps and knows no traps, errno or type-based aliasing.
std::vector<std::string> LanguageFlags() {
  return {"-std=c++17",
          "-O2",
          "-fPIC",
          "-fvisibility=hidden",
          "-fno-gnu-unique",
          "-fwrapv",
          "-fno-strict-aliasing",
          "-fno-math-errno",
          "-fno-trapping-math",
          "-w"};
}

std::vector<std::string> IncludeFlags(const EmulationPaths& paths) {
  return {"-I" + paths.headers, "-I" + paths.torch_headers,     "-isystem", paths.toolkit_headers,
          "-isystem",           paths.toolkit_headers + "/cccl"};
}

// Each load and store calls __asan_loadN or __asan_storeN, which support/counting.cc defines.
std::vector<std::string> CountingFlags() {
  return {"-DKMOSAIC_EMULATION_COUNTED=1",
          "-fsanitize=kernel-address",
          "--param=asan-instrumentation-with-call-threshold=0",
          "--param=asan-stack=0",
          "--param=asan-globals=0",
          "-fno-sanitize-address-use-after-scope"};
}

void Append(std::vector<std::string>* to, const std::vector<std::string>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

std::vector<std::string> Directories(const EmulationPaths& paths) {
  return {paths.headers,         paths.torch_headers,
          paths.support_sources, paths.toolkit_headers,
          paths.support,         fs::path(paths.runtime_library).parent_path().string()};
}

// All that decides whether a precompiled prelude fits.
std::vector<std::string> PreludeCommand(const EmulationPaths& paths, const Prelude& prelude) {
  std::vector<std::string> command = {paths.compiler};
  Append(&command, LanguageFlags());
  if (prelude.torch) Append(&command, TorchHalfDefinitions());
  if (prelude.counted) Append(&command, CountingFlags());
  Append(&command, IncludeFlags(paths));
  return command;
}

// `definitions` come last, so that they may undo those of load_inline.
std::vector<std::string> Compile(const EmulationPaths& paths, const Prelude& prelude,
                                 const std::vector<std::string>& definitions,
                                 const std::string& source, const std::string& object) {
  std::vector<std::string> command = PreludeCommand(paths, prelude);
  Append(&command, definitions);
  Append(&command, {"-include", paths.support + "/" + prelude.name(), "-c", source, "-o", object});
  return command;
}

std::vector<std::string> Link(const EmulationPaths& paths, const std::vector<std::string>& objects,
                              const std::string& output) {
  std::vector<std::string> command = {paths.compiler, "-shared", "-o", output};
  Append(&command, objects);
  Append(&command, {paths.support + "/" + kSupportObject, paths.runtime_library, "-Wl,-Bsymbolic",
                    "-Wl,--build-id=none"});
  return command;
}

absl::Status Unsupported(const std::string& what) {
  return absl::UnimplementedError(
      absl::StrCat("the emulated device cannot run this source: ", what));
}

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

absl::Status Require(const std::string& path, std::string_view what, std::string_view remedy) {
  if (IsFile(path)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the emulated device needs ", std::string(what),
                                                    ", but there is no file ", path, "; ",
                                                    std::string(remedy)));
}

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path.string()));
  return text;
}

}  // namespace

absl::Status CheckEmulationPaths(const EmulationPaths& paths) {
  const std::pair<std::string, std::pair<std::string_view, std::string_view>> required[] = {
      {paths.compiler, {"a C++ compiler", "install g++"}},
      {paths.toolkit_headers + "/cuda_runtime.h",
       {"the CUDA toolkit's headers (nvcc itself is not needed)",
        "install the toolkit or the nvidia-cuda-runtime, -crt and -cccl wheels and set "
        "CUDA_HOME"}},
      {paths.headers + "/kmosaic_emulation/language.h",
       {"its own headers", "the installation is incomplete"}},
      {paths.torch_headers + "/kmosaic_torch/abi.h",
       {"the light torch headers", "the installation is incomplete"}},
      {paths.support_sources + "/cudart.cc",
       {"its support sources", "the installation is incomplete"}},
      {paths.runtime_library, {"its runtime library", "the installation is incomplete"}},
  };
  for (const auto& [path, text] : required) {
    if (absl::Status status = Require(path, text.first, text.second); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<BuildPlan> PlanSupport(const EmulationPaths& paths) {
  if (absl::Status status = CheckEmulationPaths(paths); !status.ok()) return status;
  BuildPlan plan;
  std::vector<std::string> objects;
  for (const std::string name : {"cudart", "cublas", "counting"}) {
    std::vector<std::string> command = {paths.compiler};
    Append(&command, LanguageFlags());
    Append(&command, IncludeFlags(paths));
    Append(&command, {"-c", paths.support_sources + "/" + name + ".cc", "-o", name + ".o"});
    plan.commands.push_back(std::move(command));
    objects.push_back(name + ".o");
  }
  for (const Prelude& prelude : kPreludes) {
    plan.files.push_back({prelude.name(), prelude.text()});
    std::vector<std::string> command = PreludeCommand(paths, prelude);
    Append(&command,
           {"-x", "c++-header", prelude.name(), "-o", absl::StrCat(prelude.name(), ".gch")});
    plan.commands.push_back(std::move(command));
  }
  std::vector<std::string> combine = {paths.compiler, "-r", "-nostdlib", "-o", kSupportObject};
  Append(&combine, objects);
  plan.commands.push_back(std::move(combine));
  plan.parallel = true;
  plan.output = kSupportObject;
  plan.readable = Directories(paths);
  std::erase(plan.readable, "");
  return plan;
}

absl::StatusOr<std::string> EmulationToolchainKey(const EmulationPaths& paths,
                                                  std::string_view compiler_version) {
  Sha256 digest;
  const auto add = [&](std::string_view text) {
    digest.Update(absl::StrCat(text.size(), ":"));
    digest.Update(text);
  };
  add(compiler_version);
  // Holds CUDART_VERSION.
  auto toolkit = ReadFile(fs::path(paths.toolkit_headers) / "cuda_runtime_api.h");
  if (!toolkit.ok()) return toolkit.status();
  add(*toolkit);
  for (const std::string& root : {paths.headers, paths.torch_headers, paths.support_sources}) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(root, error)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    if (error) return absl::NotFoundError(absl::StrCat("cannot list ", root));
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      auto text = ReadFile(file);
      if (!text.ok()) return text.status();
      add(fs::relative(file, root).string());
      add(*text);
    }
  }
  return digest.FinishHex();
}

absl::StatusOr<BuildPlan> PlanEmulated(const ExtensionSource& source, const EmulationPaths& paths,
                                       const EmulationOptions& options) {
  const TorchSources sources = ComposeTorchSources(source);
  for (const std::string* text : {&sources.cpp, &sources.cuda}) {
    if (auto what = FindUnsupported(*text)) return Unsupported(*what);
  }
  const std::vector<std::string> cpp_flags = KeptFlags(source.cflags);
  const std::vector<std::string> cuda_flags = KeptFlags(source.cuda_cflags);
  BuildPlan plan;
  std::vector<std::string> objects;
  if (!sources.cuda.empty()) {
    auto rewritten = RewriteCuda(sources.cuda);
    if (!rewritten.ok()) return rewritten.status();
    plan.files.push_back({"cuda.cc", absl::StrCat("#line 1 \"cuda.cu\"\n", *rewritten)});
    plan.commands.push_back(
        Compile(paths, {.torch = true, .counted = options.count}, cuda_flags, "cuda.cc", "cuda.o"));
    objects.push_back("cuda.o");
  }
  if (!sources.cpp.empty()) {
    plan.files.push_back({"main.cc", absl::StrCat("#line 1 \"main.cpp\"\n", sources.cpp)});
    plan.commands.push_back(
        Compile(paths, {.torch = true, .counted = false}, cpp_flags, "main.cc", "main.o"));
    objects.push_back("main.o");
  }
  plan.output = "extension.so";
  plan.commands.push_back(Link(paths, objects, plan.output));
  plan.parallel = true;
  plan.readable = Directories(paths);
  return plan;
}

absl::StatusOr<BuildPlan> PlanEmulatedCuda(std::string_view source, const EmulationPaths& paths,
                                           const EmulationOptions& options) {
  if (auto what = FindUnsupported(source)) return Unsupported(*what);
  auto rewritten = RewriteCuda(source);
  if (!rewritten.ok()) return rewritten.status();
  BuildPlan plan;
  // The entries are found by name, so they must be visible.
  plan.files.push_back(
      {"cuda.cc",
       absl::StrCat("#pragma GCC visibility push(default)\n#line 1 \"kernel.cu\"\n", *rewritten)});
  plan.commands.push_back(
      Compile(paths, {.torch = false, .counted = options.count}, {}, "cuda.cc", "cuda.o"));
  plan.output = "extension.so";
  plan.commands.push_back(Link(paths, {"cuda.o"}, plan.output));
  plan.readable = Directories(paths);
  return plan;
}

}  // namespace kmosaic
