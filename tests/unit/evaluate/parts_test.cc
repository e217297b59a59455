#include <catch2/catch.hpp>

#include "gpu_worker/evaluate/cancellation.h"
#include "gpu_worker/evaluate/device_findings.h"
#include "gpu_worker/evaluate/extension_source.h"
#include "gpu_worker/evaluate/fixed_sizes.h"
#include "gpu_worker/evaluate/source_labels.h"
#include "gpu_worker/evaluate/work_cost.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using nlohmann::json;

TEST_CASE("labels come from code, not from comments, and never twice") {
  std::string source =
      "# torch.matmul and cublas are not used\n"
      "import torch  # except here\n"
      "cuda = '''\n"
      "// cublasSgemm would be slower\n"
      "/* torch::matmul\n"
      "   cudaStreamCreate */\n"
      "#include <cuda_runtime.h>\n"
      "cublasSgemm(handle);\n"
      "cublasGemmEx(handle);\n"
      "'''\n"
      "def forward(self, x):\n"
      "    try:\n"
      "        return my.torch_matmul_custom(x)\n"
      "    except RuntimeError:\n"
      "        return torch.matmul(x, x)\n";
  CHECK(SourceLabels(source) == std::vector<std::string>{"library call: cublas (line 8)",
                                                         "try/except (line 14)",
                                                         "library call: torch.matmul (line 15)"});
  CHECK(SourceLabels("import gc\nx = gc.get_objects()\nos._exit(0)\nmy_fork()\nfork();\n") ==
        std::vector<std::string>{"objects of the interpreter (line 2)", "ends the process (line 3)",
                                 "other processes (line 5)"});
  CHECK(SourceLabels("").empty());
  CHECK(SourceLabels("/* never closed").empty());
}

TEST_CASE("the report of a crash is read as far as it is whole") {
  std::string report =
      "{\"kind\":\"out_of_bounds\",\"kernel\":\"k\",\"block\":[0,0,0],\"thread\":[1,2,3],"
      "\"detail\":\"d\"}\n{\"kind\":\"race\",\"ker";
  report += std::string(1000, '\0');
  auto findings = ParseReport(report);
  REQUIRE(findings.size() == 1);
  CHECK(Words(findings[0]) == "k, block (0,0,0), thread (1,2,3): d");
  CHECK(ParseReport(std::string(4096, '\0')).empty());
  CHECK(ParseReport("[1,2]\nnull\n3\n").empty());
}

TEST_CASE("findings from a hostile process are bounded") {
  json list = json::array();
  for (int i = 0; i < 1000; ++i) {
    list.push_back({{"kind", "race"}, {"detail", std::string(10'000, 'x')}, {"block", "no"}});
  }
  auto findings = ParseFindings(list);
  CHECK(findings.size() == 64);
  CHECK(findings[0].detail.size() < 700);
  CHECK(ParseFindings(json("text")).empty());
}

TEST_CASE("the worst finding decides") {
  auto findings = ParseFindings(json::array({{{"kind", "divergent_shuffle"}},
                                             {{"kind", "illegal_launch"}},
                                             {{"kind", "out_of_bounds"}}}));
  CHECK(Conclude(findings)->verdict == v1::VERDICT_OUT_OF_BOUNDS);
  CHECK(Notes(findings) == std::vector<std::string>{"divergent shuffle: a kernel"});
  CHECK(Conclude(ParseFindings(json::array({{{"kind", "race"}}})))->verdict ==
        v1::VERDICT_DATA_RACE);
  auto shared = ParseFindings(json::array({{{"kind", "uninitialised_shared"}}}));
  CHECK_FALSE(Conclude(shared).has_value());
  CHECK(Notes(shared) == std::vector<std::string>{"uninitialised shared: a kernel"});
}

TEST_CASE("calls that build are counted by their words") {
  CHECK(CountBuildCalls("m = load_inline(name='a')\nn = cpp_extension.load_inline (\n)") == 2);
  CHECK(CountBuildCalls("from torch.utils.cpp_extension import load, load_inline") == 0);
  CHECK(CountBuildCalls("load(name='a'); torch.load('x'); unload(); cpp_extension.load()") == 2);
  CHECK(CountBuildCalls("load") == 0);
  CHECK(CountBuildCalls("") == 0);
}

TEST_CASE("sizes that a solution holds as numbers are found as whole numbers only") {
  std::map<std::string, int64_t> shapes = {{"batch", 2}, {"dim", 64}, {"height", 8}, {"width", 8}};
  std::map<std::string, int64_t> sizes = {
      {"batch", 256}, {"dim", 1024}, {"height", 224}, {"width", 225}, {"kept", 77}};
  std::string source = "#define N 1024u\nself.h = randn((256, n)); x224 = 2.25; y = 77; z_225 = 1";
  CHECK(FixedSizes(source, shapes, sizes) ==
        std::map<std::string, int64_t>{{"batch", 256}, {"dim", 1024}});
  CHECK(FixedSizes("", shapes, sizes).empty());
  std::string repeated =
      "# dim is 1024\nbatch_size = 256\ndim = 1024\n/* 256\n 1024 */\nint n; // 256\n"
      "def get_inputs():\n    return [torch.randn(256, 1024)]\n\n"
      "def get_init_inputs():\n    return [256,\n    1024]\n"
      "class ModelNew:\n    x = dim\n";
  CHECK(FixedSizes(repeated, shapes, sizes) == std::map<std::string, int64_t>{{"dim", 1024}});
  std::string parameter =
      "batch, dim = 256, 1024\nclass ModelNew:\n    def __init__(self, dim):\n"
      "        self.dim = dim\n";
  CHECK(FixedSizes(parameter, shapes, sizes).empty());
  CHECK(SizesText({{"batch", 256}, {"dim", 1024}}) == "batch=256, dim=1024");
  CHECK(MayComeFromShapes(v1::VERDICT_WRONG_OUTPUT));
  CHECK_FALSE(MayComeFromShapes(v1::VERDICT_NO_CUSTOM_KERNEL));
}

TEST_CASE("cost grows with each kind of work and ignores what is no number") {
  v1::WorkReport nothing = ParseWork(json::object());
  CHECK(nothing.cost() == 0);
  for (const char* key : {"launches", "threads", "global_load_bytes", "global_store_bytes",
                          "shared_bytes", "barriers", "warp_operations", "atomics"}) {
    CHECK(ParseWork({{key, 1000}}).cost() > 0);
    CHECK(ParseWork({{key, -5}}).cost() == 0);
    CHECK(ParseWork({{key, "many"}}).cost() == 0);
  }
  CHECK(ParseWork({{"global_load_bytes", 100}, {"global_store_bytes", 28}}).cost() == 128);
}

TEST_CASE("recorded extensions are checked") {
  json good = {{"key", std::string(64, 'a')}, {"name", "n"},
               {"cpp_sources", {"c"}},        {"cuda_sources", {"u"}},
               {"functions", {"f"}},          {"cflags", json::array()},
               {"cuda_cflags", {"-O3"}},      {"ldflags", json::array()}};
  auto parsed = ParseExtensions(json::array({good}));
  REQUIRE(parsed.ok());
  CHECK((*parsed)[0].cuda_cflags == std::vector<std::string>{"-O3"});
  for (const char* key : {"key", "name", "cpp_sources", "functions", "ldflags"}) {
    json bad = good;
    bad.erase(key);
    CHECK_FALSE(ParseExtensions(json::array({bad})).ok());
    bad[key] = 3;
    CHECK_FALSE(ParseExtensions(json::array({bad})).ok());
  }
  json path = good;
  path["key"] = "../../" + std::string(58, 'a');
  CHECK_FALSE(ParseExtensions(json::array({path})).ok());
  CHECK_FALSE(ParseExtensions(json()).ok());
  CHECK_FALSE(ParseExtensions(json::array({nullptr})).ok());
}

TEST_CASE("a cancellation reaches callbacks set before and after, once") {
  Cancellation cancellation;
  int called = 0;
  auto before = cancellation.OnCancel([&] { ++called; });
  {
    auto removed = cancellation.OnCancel([&] { called += 100; });
  }
  cancellation.Cancel();
  cancellation.Cancel();
  CHECK(called == 1);
  auto after = cancellation.OnCancel([&] { ++called; });
  CHECK(called == 2);
  CHECK(cancellation.cancelled());
}

}  // namespace
}  // namespace kmosaic
