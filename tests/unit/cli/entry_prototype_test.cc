#include "cli/taskfiles/entry_prototype.h"

#include <catch2/catch.hpp>

using namespace kmosaic;
using Entry = kernelmosaic::v1::CudaEntry;

namespace {

Entry Good() {
  Entry entry;
  entry.set_prototype("void f(const float* x, float *y, int64_t n, cudaStream_t stream)");
  (*entry.mutable_bindings())["x"] = "input[0]";
  (*entry.mutable_bindings())["y"] = "output[0]";
  (*entry.mutable_bindings())["n"] = "input[0].numel";
  return entry;
}

}  // namespace

TEST_CASE("A prototype is taken apart into types and names") {
  auto parsed =
      ParseEntryPrototype("void f(const float* x, float *y,\n  int64_t n, cudaStream_t s);");
  REQUIRE(parsed.ok());
  CHECK(parsed->name == "f");
  REQUIRE(parsed->parameters.size() == 4);
  CHECK(parsed->parameters[0].type == "const float*");
  CHECK(parsed->parameters[1].type == "float *");
  CHECK(parsed->parameters[1].name == "y");
  CHECK(parsed->parameters[3].type == "cudaStream_t");
}

TEST_CASE("A prototype that returns something, or has nameless parameters, is refused") {
  CHECK_FALSE(ParseEntryPrototype("int f(int x)").ok());
  CHECK_FALSE(ParseEntryPrototype("extern \"C\" void f(int x)").ok());
  CHECK_FALSE(ParseEntryPrototype("void f").ok());
  auto nameless = ParseEntryPrototype("void f(float*)");
  REQUIRE_FALSE(nameless.ok());
  CHECK(std::string(nameless.status().message()) ==
        "parameter \"float*\" of the prototype must be a type and a name");
}

TEST_CASE("A good entry has nothing wrong, and its stream needs no binding") {
  CHECK(CheckEntry(Good()).empty());
}

TEST_CASE("Each of the documented forms of a binding is accepted") {
  for (const char* target :
       {"input[0]", "output[2]", "input[0].shape[1]", "output[0].shape[0]", "input[3].numel",
        "output[0].numel", "init[0]", "param[linear.weight]"}) {
    Entry entry = Good();
    (*entry.mutable_bindings())["n"] = target;
    INFO(target);
    CHECK(CheckEntry(entry).empty());
  }
}

TEST_CASE("What is wrong with an entry is said parameter by parameter") {
  Entry entry = Good();
  entry.mutable_bindings()->erase("n");
  (*entry.mutable_bindings())["m"] = "input[0].size";
  CHECK(CheckEntry(entry) ==
        std::vector<std::string>{
            "binding \"m\" names no parameter of the prototype",
            "binding \"m: input[0].size\" must be input[I], output[I], input[I].shape[D], "
            "output[I].shape[D], input[I].numel, init[I] or param[NAME]",
            "parameter \"n\" has no binding; add n: input[0] or the like"});
}
