#include "gpu_worker/emulation/unsupported.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

namespace kmosaic {
namespace {

TEST_CASE("what the device has not is named with its line") {
  const std::pair<std::string, std::string> cases[] = {
      {"\n__global__ void k() { asm volatile(\"mov.u32 %0, %laneid;\" : \"=r\"(x)); }",
       "line 2: inline PTX"},
      {"#include <mma.h>\n", "line 1: tensor cores"},
      {"using namespace nvcuda;", "tensor cores"},
      {"#include <cutlass/gemm.h>", "CUTLASS"},
      {"#include \"thrust/sort.h\"", "Thrust"},
      {"tex2D<float>(t, x, y);", "textures"},
      {"cg::grid_group g = cg::this_grid();", "grid-wide"},
      {"int f() {\n return cublasStrsm(h, 1); }", "line 2: the cuBLAS function cublasStrsm"},
      {"py::class_<Foo>(m, \"Foo\");", "classes"},
      {"__device__ void r(volatile float* s, int t) { s[t] += s[t + 32]; }", "volatile"},
      {"__shared__ volatile float s[64];", "volatile"},
  };
  for (const auto& [source, expected] : cases) {
    CAPTURE(source);
    const auto found = FindUnsupported(source);
    REQUIRE(found);
    CHECK(found->find(expected) != std::string::npos);
  }
}

TEST_CASE("what only looks like it is let through") {
  for (const std::string source :
       {"// asm volatile(\"x\")\n", "const char* s = \"wmma\";", "int assembly = 1;",
        "asm volatile(\"\" ::: \"memory\");", "#include <cuda_runtime.h>\n#include <cuda.h>\n",
        "volatile int counter = 0;", "volatile float* p = s; __syncwarp();",
        "#include <cub/cub.cuh>\n", "cublasSgemm(h); cublasHandle_t h;",
        "void cublasWrapper(int); void f() { cublasWrapper(1); }"}) {
    CAPTURE(source);
    CHECK_FALSE(FindUnsupported(source));
  }
}

}  // namespace
}  // namespace kmosaic
