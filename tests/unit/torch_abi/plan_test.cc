#include "gpu_worker/torch_abi/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"

namespace kmosaic {
namespace {

const LightToolkit kToolkit = {"/cuda/bin/nvcc", "/cuda/include", "/cuda/lib", "/usr/bin/g++",
                               "/light/include"};

TEST_CASE("an extension is two compiles side by side and a link") {
  ExtensionSource source;
  source.cpp_sources = {"int f();"};
  source.cuda_sources = {"int f() { return 1; }"};
  source.functions = {"f"};
  source.cuda_cflags = {"--use_fast_math", "-O1", "-DX=1", "-gencode=arch=compute_50,code=sm_50"};
  source.ldflags = {"-lcublas", "-L/somewhere", "-Wl,-rpath,/x"};
  const auto plan = PlanLight(source, kToolkit, "sm_90a");
  REQUIRE(plan.ok());
  REQUIRE(plan->commands.size() == 4);
  CHECK(plan->parallel);
  CHECK(plan->output == "extension.so");
  const std::string compile = absl::StrJoin(plan->commands[0], " ");
  CHECK(compile.find("-arch=sm_90a -O3") != std::string::npos);
  CHECK(compile.find("--use_fast_math") != std::string::npos);
  CHECK(compile.find("-DX=1") != std::string::npos);
  CHECK(compile.find("gencode") == std::string::npos);
  CHECK(absl::StrJoin(plan->commands[2], " ").find("launch_gate.c") != std::string::npos);
  const std::string link = absl::StrJoin(plan->commands[3], " ");
  CHECK(link.find("--wrap=cudaLaunchKernel,") != std::string::npos);
  CHECK(link.find("launch_gate.o") != std::string::npos);
  CHECK(link.find("-lcublas") != std::string::npos);
  CHECK(link.find("somewhere") == std::string::npos);
  CHECK(link.find("rpath") == std::string::npos);
}

TEST_CASE("an architecture that is none is refused") {
  for (const char* arch : {"", "sm_", "90", "sm_9x", "sm_90 -O0", "compute_90"}) {
    CHECK(PlanLightCuda("", kToolkit, arch).status().code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(PlanLightCuda("", kToolkit, "sm_90").ok());
}

TEST_CASE("a toolkit that is not there is named") {
  const absl::Status status = CheckLightToolkit(kToolkit);
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(status.message()).find("/cuda/bin/nvcc") != std::string::npos);
}

TEST_CASE("what torch has and the light headers lack is told apart from faults of the source") {
  const auto include = std::filesystem::temp_directory_path() / "kmosaic_torch_include_test";
  std::filesystem::create_directories(include / "ATen/ops");
  std::ofstream(include / "ATen/ops/fft_fft.h") << "";
  std::ofstream(include / "ATen/Parallel.h") << "";
  const std::string torch = include.string();
  CHECK(LacksTorchApi("main.cpp:3:10: error: 'fft_fft' is not a member of 'torch'", torch));
  CHECK(
      LacksTorchApi("error: \xe2\x80\x98"
                    "class at::Tensor\xe2\x80\x99 has no member named \xe2\x80\x98"
                    "fft_fft\xe2\x80\x99",
                    torch));
  CHECK(LacksTorchApi("error: namespace \"torch\" has no member \"fft_fft\"", torch));
  CHECK(LacksTorchApi("fatal error: ATen/Parallel.h: No such file or directory", torch));
  CHECK(LacksTorchApi("error: cannot open source file \"ATen/Parallel.h\"", torch));
  CHECK_FALSE(LacksTorchApi("error: 'no_such_thing' is not a member of 'torch'", torch));
  CHECK_FALSE(LacksTorchApi("fatal error: ATen/None.h: No such file or directory", torch));
  CHECK_FALSE(LacksTorchApi("error: 'fft_fft' was not declared in this scope", torch));
  CHECK_FALSE(LacksTorchApi("error: 'fft_fft' is not a member of 'torch'", ""));
  std::filesystem::remove_all(include);
}

}  // namespace
}  // namespace kmosaic
