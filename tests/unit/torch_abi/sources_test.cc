#include "gpu_worker/torch_abi/sources.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

TEST_CASE("sources get torch's includes, and the functions their binding") {
  ExtensionSource source;
  source.cpp_sources = {"int f(int);", "int g(int);"};
  source.cuda_sources = {"int f(int) { return 1; }"};
  source.functions = {"f", "g"};
  const TorchSources out = ComposeTorchSources(source);
  CHECK(out.cpp ==
        "#include <torch/extension.h>\nint f(int);\nint g(int);\n"
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n"
        "m.def(\"f\", torch::wrap_pybind_function(f), \"f\");\n"
        "m.def(\"g\", torch::wrap_pybind_function(g), \"g\");\n}\n");
  CHECK(out.cuda ==
        "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
        "int f(int) { return 1; }");
}

TEST_CASE("blank sources make no translation unit") {
  ExtensionSource source;
  source.cpp_sources = {" \n\t"};
  const TorchSources out = ComposeTorchSources(source);
  CHECK(out.cpp.empty());
  CHECK(out.cuda.empty());
}

TEST_CASE("of the flags, definitions and the language level are kept") {
  CHECK(KeptFlags({"-O3", "-DN=4", "-D", "M", "-I/etc", "-std=c++20", "-UX", "@file", "-D"}) ==
        std::vector<std::string>{"-DN=4", "-DM", "-std=c++20", "-UX"});
}

}  // namespace
}  // namespace kmosaic
