#include "gpu_worker/emulation/plan.h"

#include <catch2/catch.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "unit/emulation/built_plan.h"

namespace kmosaic {
namespace {

EmulationPaths Paths() {
  EmulationPaths paths;
  paths.compiler = "/usr/bin/g++";
  paths.headers = "/k/emulation";
  paths.torch_headers = "/k/torch";
  paths.support_sources = "/k/support";
  paths.toolkit_headers = "/cuda/include";
  paths.runtime_library = "/k/lib/libkmosaic_emulation_runtime.so";
  paths.support = "/cache/support";
  return paths;
}

ExtensionSource Source(const std::string& cuda) {
  ExtensionSource source;
  source.cpp_sources = {"int f();"};
  source.cuda_sources = {cuda};
  source.functions = {"f"};
  source.cuda_cflags = {"-O3", "--use_fast_math", "-DN=3"};
  return source;
}

TEST_CASE("an extension is two compiles and a link, with the candidate's definitions") {
  const auto plan =
      PlanEmulated(Source("__global__ void k() {}\nint f() { k<<<1, 1>>>(); return 0; }"), Paths());
  REQUIRE(plan.ok());
  REQUIRE(plan->commands.size() == 3);
  CHECK(plan->parallel);
  const std::string compile = absl::StrJoin(plan->commands[0], " ");
  CHECK(compile.find("-DN=3") != std::string::npos);
  CHECK(compile.find("fast_math") == std::string::npos);
  CHECK(compile.find("-include /cache/support/kmosaic_torch.h") != std::string::npos);
  const std::string link = absl::StrJoin(plan->commands[2], " ");
  CHECK(link.find("-Wl,-Bsymbolic") != std::string::npos);
  CHECK(plan->files[0].text.find("kmosaic_emulation::Launch") != std::string::npos);
}

TEST_CASE("half operators are torch's in an extension, and can be switched back on") {
  ExtensionSource source = Source("int f() { return 0; }");
  source.cuda_cflags = {"-U__CUDA_NO_HALF_OPERATORS__"};
  const auto plan = PlanEmulated(source, Paths());
  REQUIRE(plan.ok());
  const std::string compile = absl::StrJoin(plan->commands[0], " ");
  const size_t off = compile.find("-D__CUDA_NO_HALF_OPERATORS__");
  const size_t on = compile.find("-U__CUDA_NO_HALF_OPERATORS__");
  REQUIRE(off != std::string::npos);
  REQUIRE(on != std::string::npos);
  CHECK(off < on);
  const auto plain = PlanEmulatedCuda("void k() {}", Paths());
  REQUIRE(plain.ok());
  CHECK(absl::StrJoin(plain->commands[0], " ").find("NO_HALF") == std::string::npos);
}

TEST_CASE("every kind of compile has its precompiled prelude") {
  const auto paths = TestPaths();
  if (!paths) return;
  ExtensionSource source = Source("int f() { return 0; }");
  source.cuda_cflags.clear();
  for (const bool count : {false, true}) {
    for (BuildPlan plan : {*PlanEmulated(source, *paths, {count}),
                           *PlanEmulatedCuda("void k() {}", *paths, {count})}) {
      for (auto& command : plan.commands) {
        if (absl::c_linear_search(command, "-c"))
          command.insert(command.end(), {"-Winvalid-pch", "-Werror"});
        std::erase(command, "-w");
      }
      const BuildDirectory directory;
      CHECK(directory.ErrorsOf(plan) == "");
    }
  }
}

TEST_CASE("what the device has not is unimplemented, a broken launch invalid") {
  CHECK(PlanEmulated(Source("#include <mma.h>"), Paths()).status().code() ==
        absl::StatusCode::kUnimplemented);
  CHECK(PlanEmulated(Source("k<<<1"), Paths()).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(PlanEmulatedCuda("void k() { asm(\"trap;\"); }", Paths()).status().code() ==
        absl::StatusCode::kUnimplemented);
}

TEST_CASE("headers that are not there are named with what to do") {
  EmulationPaths paths = Paths();
  paths.compiler = "/bin/sh";  // any file
  const absl::Status status = CheckEmulationPaths(paths);
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  const std::string text(status.message());
  CHECK(text.find("/cuda/include/cuda_runtime.h") != std::string::npos);
  CHECK(text.find("CUDA_HOME") != std::string::npos);
}

}  // namespace
}  // namespace kmosaic
