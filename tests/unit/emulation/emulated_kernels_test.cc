// Real CUDA sources through the plan, a compiler and the runtime. Needs the CUDA toolkit's headers
// (CUDA_HOME or /usr/local/cuda); without them these tests say so and check nothing.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "gpu_worker/emulation/plan.h"
#include "unit/emulation/built_plan.h"
#include "unit/emulation/device_fixture.h"

namespace kmosaic {
namespace {

// The library made of kernels.cu, built once; null without a toolkit.
void* Kernels() {
  static void* library = [] {
    const auto paths = TestPaths();
    if (!paths) return static_cast<void*>(nullptr);
    const auto plan = PlanEmulatedCuda(ReadTestFile("tests/unit/emulation/kernels.cu"), *paths);
    if (!plan.ok()) throw std::runtime_error(std::string(plan.status().message()));
    static const BuildDirectory directory;
    void* loaded = dlopen(directory.Build(*plan).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) throw std::runtime_error(dlerror());
    return loaded;
  }();
  return library;
}

int Run(const char* entry) {
  auto* function = reinterpret_cast<int (*)()>(dlsym(Kernels(), entry));
  REQUIRE(function != nullptr);
  return function();
}

TEST_CASE("right kernels give right results under every schedule, without findings") {
  if (Kernels() == nullptr) {
    WARN("no CUDA toolkit headers: kernels are not compiled");
    return;
  }
  for (const char* schedule : kSchedules) {
    for (const char* entry : {"run_matmul", "run_reduction", "run_atomics", "run_half",
                              "run_vectors", "run_groups", "run_cub", "run_cublas"}) {
      CAPTURE(schedule, entry);
      REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
      CHECK(Run(entry) == 0);
      CHECK(Findings() == "[]");
    }
  }
}

TEST_CASE("the CUDA runtime's calls answer as on a device") {
  if (Kernels() == nullptr) return;
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  CHECK(Run("run_runtime") == 0);
  CHECK(Has(Findings(), "102400 bytes of dynamic shared memory"));
}

TEST_CASE("a failed assert and a shared overrun end the launch with the kernel named") {
  if (Kernels() == nullptr) return;
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  CHECK(Run("run_assert") == 0);
  CHECK(Has(Findings(), "\"kernel\":\"asserting\""));
  CHECK(Has(Findings(), "\"thread\":[5,0,0]"));
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  CHECK(Run("run_shared_overrun") == 0);
  CHECK(Has(Findings(), "byte offset 128 of shared variable tile of 128 bytes"));
}

TEST_CASE("too much static shared memory is a compile error") {
  const auto paths = TestPaths();
  if (!paths) return;
  const auto plan = PlanEmulatedCuda(
      "__global__ void k() { __shared__ float a[10000]; __shared__ float b[10000]; a[0] = b[0]; }",
      *paths);
  REQUIRE(plan.ok());
  const BuildDirectory directory;
  CHECK(directory.ErrorsOf(*plan).find("above 48 KiB") != std::string::npos);
}

TEST_CASE("an extension compares torch's half and bfloat16 in device code") {
  const auto paths = TestPaths();
  if (!paths) return;
  ExtensionSource source;
  source.cuda_sources = {
      "template <class T> __global__ void k(const T* in, T* out) {\n"
      "  const T limit = 1.0f; const T x = in[threadIdx.x];\n"
      "  out[threadIdx.x] = x > limit || x == limit || x < 0.5f ? x : x * limit;\n"
      "}\n"
      "void f(torch::Tensor x) {\n"
      "  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16,\n"
      "      x.scalar_type(), \"f\", [&] {\n"
      "    k<scalar_t><<<1, 1>>>(x.data_ptr<scalar_t>(), x.data_ptr<scalar_t>()); });\n"
      "}\n"};
  for (const bool count : {false, true}) {
    const auto plan = PlanEmulated(source, *paths, {count});
    REQUIRE(plan.ok());
    const BuildDirectory directory;
    CHECK(directory.ErrorsOf(*plan) == "");
  }
}

TEST_CASE("a counting build counts what a kernel loads and stores") {
  const auto paths = TestPaths();
  if (!paths) return;
  EmulationOptions options;
  options.count = true;
  const auto plan = PlanEmulatedCuda(
      "#include <cuda_runtime.h>\n"
      "__global__ void k(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] + 1; }\n"
      "extern \"C\" int run() { float *a, *b; cudaMalloc(&a, 256); cudaMalloc(&b, 256);\n"
      "  k<<<2, 64>>>(a, b); cudaFree(a); cudaFree(b); return 0; }\n",
      *paths, options);
  REQUIRE(plan.ok());
  const BuildDirectory directory;
  void* library = dlopen(directory.Build(*plan).c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  reinterpret_cast<int (*)()>(dlsym(library, "run"))();
  KmEmuCounters counters;
  kmosaic_emu_counters(&counters);
  CHECK(counters.instrumented == 1);
  CHECK(counters.global_loads == 128);
  CHECK(counters.global_store_bytes == 512);
  CHECK(counters.shared_loads == 0);
}

TEST_CASE("counted, right kernels have no findings, and each fault has its own") {
  const auto paths = TestPaths();
  if (!paths) return;
  EmulationOptions options;
  options.count = true;
  const std::string faulty =
      "__global__ void histogram(const int* in, int* bins) { bins[in[threadIdx.x] & 3]++; }\n"
      "__global__ void shared_histogram(const int* in, int* out) {\n"
      "  __shared__ int bins[4];\n"
      "  if (threadIdx.x < 4) bins[threadIdx.x] = 0;\n"
      "  __syncthreads(); bins[in[threadIdx.x] & 3] += 1; __syncthreads();\n"
      "  if (threadIdx.x < 4) out[threadIdx.x] = bins[threadIdx.x]; }\n"
      "__global__ void unwritten(int* out) { __shared__ int tile[32];\n"
      "  if (threadIdx.x > 0) tile[threadIdx.x] = 1; __syncthreads();\n"
      "  out[threadIdx.x] = tile[threadIdx.x]; }\n"
      "template <class F> static int With(F f) { int *a, *b; cudaMalloc(&a, 256);\n"
      "  cudaMalloc(&b, 256); cudaMemset(a, 0, 256); cudaMemset(b, 0, 256); f(a, b);\n"
      "  cudaFree(a); cudaFree(b); return 0; }\n"
      "extern \"C\" int run_histogram() {\n"
      "  return With([](int* a, int* b) { histogram<<<1, 64>>>(a, b); }); }\n"
      "extern \"C\" int run_shared_histogram() {\n"
      "  return With([](int* a, int* b) { shared_histogram<<<1, 64>>>(a, b); }); }\n"
      "extern \"C\" int run_unwritten() {\n"
      "  return With([](int* a, int*) { unwritten<<<1, 32>>>(a); }); }\n";
  const auto plan = PlanEmulatedCuda(
      ReadTestFile("tests/unit/emulation/kernels.cu") + "\n" + faulty, *paths, options);
  REQUIRE(plan.ok());
  const BuildDirectory directory;
  void* library = dlopen(directory.Build(*plan).c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto run = [&](const char* schedule, const char* entry) {
    CAPTURE(schedule, entry);
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    auto* function = reinterpret_cast<int (*)()>(dlsym(library, entry));
    REQUIRE(function != nullptr);
    CHECK(function() == 0);
    return Findings();
  };
  for (const char* schedule : kSchedules) {
    for (const char* entry : {"run_matmul", "run_reduction", "run_atomics", "run_half",
                              "run_vectors", "run_groups", "run_cub", "run_cublas"}) {
      CAPTURE(schedule, entry);
      CHECK(run(schedule, entry) == "[]");
    }
    for (const char* entry : {"run_histogram", "run_shared_histogram"}) {
      CHECK(Has(run(schedule, entry), "\"kind\":\"race\""));
    }
    CHECK(Has(run(schedule, "run_unwritten"),
              "byte offset 0 of shared variable tile of 128 bytes is read before"));
  }
  KmEmuCounters counters;
  run("forward", "run_atomics");
  kmosaic_emu_counters(&counters);
  CHECK(counters.atomics > 0);
}

}  // namespace
}  // namespace kmosaic
