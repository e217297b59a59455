#include "agent_runner/agent/code_extraction.h"

#include <catch2/catch.hpp>

using namespace kmosaic;  // NOLINT: tests

namespace {

EntryPoint Cuda(const std::string& function) { return {v1::CONTRACT_CUDA, function}; }

const EntryPoint kModelNew;

}  // namespace

TEST_CASE("ExtractCode takes the last complete block that defines the entry point") {
  Extraction found = ExtractCode(
      "First:\n```python\nclass ModelNew(nn.Module):\n    a = 1\n```\n"
      "An improved version:\n```python\nclass ModelNew(nn.Module):\n    a = 2\n```\n"
      "Use it like this:\n```python\nmodel = ModelNew()\n```\n",
      kModelNew);
  CHECK(found.outcome == ExtractionOutcome::kCode);
  CHECK(found.code == "class ModelNew(nn.Module):\n    a = 2\n");
  CHECK(found.blocks == 3);
}

TEST_CASE("ExtractCode does not end a longer fence at a shorter one inside it") {
  Extraction found = ExtractCode(
      "````python\n\"\"\"\n```\nexample\n```\n\"\"\"\nclass ModelNew(nn.Module):\n    pass\n````\n",
      kModelNew);
  CHECK(found.outcome == ExtractionOutcome::kCode);
  CHECK(found.code.substr(0, 8) == "\"\"\"\n```\n");
}

TEST_CASE("ExtractCode reads fences of tildes, with any info string, and Windows line ends") {
  for (const char* info : {"", "python", "cuda", "C++ title=x", " py "}) {
    std::string reply =
        std::string("~~~") + info + "\r\nclass ModelNew(nn.Module):\r\n    pass\r\n~~~\r\n";
    Extraction found = ExtractCode(reply, kModelNew);
    CHECK(found.outcome == ExtractionOutcome::kCode);
    CHECK(found.code == "class ModelNew(nn.Module):\n    pass\n");
  }
}

TEST_CASE("ExtractCode reads a block inside a list item without the item's indentation") {
  Extraction found = ExtractCode(
      "1. The kernel:\n\n   ```python\n   class ModelNew(nn.Module):\n       pass\n   ```\n"
      "2. Done.\n",
      kModelNew);
  CHECK(found.outcome == ExtractionOutcome::kCode);
  CHECK(found.code == "class ModelNew(nn.Module):\n    pass\n");
}

TEST_CASE("ExtractCode takes a fence indented by four columns outside of a list for text") {
  CHECK(ExtractCode("    ```python\n    class ModelNew:\n    ```\n", kModelNew).outcome ==
        ExtractionOutcome::kNoCode);
}

TEST_CASE("ExtractCode calls an unclosed block truncated and does not compile it") {
  Extraction found = ExtractCode("```python\nclass ModelNew(nn.Module):\n    x = ", kModelNew);
  CHECK(found.outcome == ExtractionOutcome::kTruncated);
  CHECK(found.code.empty());
}

TEST_CASE("ExtractCode prefers a complete version over a later one that is cut off") {
  Extraction found = ExtractCode(
      "```python\nclass ModelNew(nn.Module):\n    pass\n```\nFaster:\n```python\nclass Model",
      kModelNew);
  CHECK(found.outcome == ExtractionOutcome::kCode);
}

TEST_CASE("ExtractCode tells prose, code without fences and code without an entry point apart") {
  CHECK(ExtractCode("I cannot do this.", kModelNew).outcome == ExtractionOutcome::kNoCode);
  CHECK(ExtractCode("", kModelNew).outcome == ExtractionOutcome::kNoCode);
  CHECK(ExtractCode("class ModelNew(nn.Module):\n    pass\n", kModelNew).outcome ==
        ExtractionOutcome::kUnfenced);
  CHECK(ExtractCode("```python\nclass Model(nn.Module): pass\n```\n", kModelNew).outcome ==
        ExtractionOutcome::kNoEntryPoint);
}

TEST_CASE("DefinesEntryPoint wants a class at the start of a line") {
  CHECK(DefinesEntryPoint("class ModelNew:\n", kModelNew));
  CHECK(DefinesEntryPoint("import x\nclass  ModelNew (nn.Module):\n", kModelNew));
  CHECK_FALSE(DefinesEntryPoint("  class ModelNew:\n", kModelNew));
  CHECK_FALSE(DefinesEntryPoint("class ModelNewer(nn.Module):\n", kModelNew));
  CHECK_FALSE(DefinesEntryPoint("# class ModelNew(nn.Module):\n", kModelNew));
}

TEST_CASE("DefinesEntryPoint wants a definition with extern C for a CUDA entry") {
  EntryPoint entry = Cuda("softmax");
  CHECK(DefinesEntryPoint("extern \"C\" void softmax(const float* x, int n) {\n}", entry));
  CHECK(
      DefinesEntryPoint("extern \"C\" {\nvoid softmax(int (*f)(int), int n)\n{ f(n); }\n}", entry));
  SECTION("a declaration is none") {
    CHECK_FALSE(DefinesEntryPoint("extern \"C\" void softmax(const float* x);", entry));
  }
  SECTION("a call is none") {
    CHECK_FALSE(DefinesEntryPoint("extern \"C\" void other() { softmax(1); }", entry));
  }
  SECTION("another name is none") {
    CHECK_FALSE(DefinesEntryPoint("extern \"C\" void softmax2(int n) {}", entry));
    CHECK_FALSE(DefinesEntryPoint("extern \"C\" void my_softmax(int n) {}", entry));
  }
  SECTION("comments and strings are none") {
    CHECK_FALSE(DefinesEntryPoint("// extern \"C\" void softmax(int n) {}\n", entry));
    CHECK_FALSE(DefinesEntryPoint("/* extern \"C\" */ void softmax(int n) {}\n", entry));
    CHECK_FALSE(DefinesEntryPoint("extern \"C\" int x; const char* s = \"void softmax(int n) {}\";",
                                  entry));
    CHECK_FALSE(DefinesEntryPoint(
        "extern \"C\" int x; const char* s = R\"d(void softmax(int n) {})d\";", entry));
  }
  SECTION("without C linkage it is none") {
    CHECK_FALSE(DefinesEntryPoint("void softmax(int n) {}", entry));
  }
  SECTION("digit separators do not open a character literal") {
    CHECK(DefinesEntryPoint("const int k = 1'000; extern \"C\" void softmax(int n) {}", entry));
  }
}

TEST_CASE("EntryPointOf reads the function's name from the prototype") {
  v1::TaskSpec task;
  task.set_contract(v1::CONTRACT_CUDA);
  task.mutable_oracle()->mutable_entry()->set_prototype("void row_sum (const float* x, int64_t n)");
  CHECK(EntryPointOf(task).function == "row_sum");
  task.mutable_oracle()->mutable_entry()->set_prototype("nonsense");
  CHECK(EntryPointOf(task).function.empty());
}
