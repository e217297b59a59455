#include "agent_runner/agent/normalised_source.h"

#include <catch2/catch.hpp>

using namespace kmosaic;  // NOLINT: tests

namespace {

std::string Cuda(const std::string& source) {
  v1::Solution solution;
  solution.set_contract(v1::CONTRACT_CUDA);
  solution.set_source(source);
  return NormalisedSource(solution);
}

std::string Python(const std::string& source) {
  v1::Solution solution;
  solution.set_contract(v1::CONTRACT_MODELNEW);
  solution.set_source(source);
  return NormalisedSource(solution);
}

}  // namespace

TEST_CASE("Comments and white space of C++ do not count") {
  CHECK(Cuda("int  a; // one\n\n\n  /* two\n lines */ int b;\t \r\n") == "int a;\nint b;\n");
  CHECK(Cuda("int a;\nint b;\n") == Cuda("\tint a;   \n\n// x\nint b; // y\n"));
}

TEST_CASE("What looks like a comment of C++ and is none stays") {
  CHECK(Cuda("p = \"// no  comment\";\n") == "p = \"// no  comment\";\n");
  CHECK(Cuda("c = '\"'; // c\n") == "c = '\"';\n");
  CHECK(Cuda("n = 1'000; // n\n") == "n = 1'000;\n");
  CHECK(Cuda("s = R\"x(// )\" raw)x\"; // s\n") == "s = R\"x(// )\" raw)x\";\n");
  CHECK(Cuda("s = \"\\\"// \"; // s\n") == "s = \"\\\"// \";\n");
}

TEST_CASE("Lines that a backslash ties together stay as they are") {
  CHECK(Cuda("#define A 1 \\\n  + 2\nint a;\n") == "#define A 1 \\\n+ 2\nint a;\n");
  CHECK(Cuda("#define A 1 \\\n\nint a;\n") != Cuda("#define A 1 \\\nint a;\n"));
  CHECK(Cuda("// a \\\n still a comment\nint a;\n") == "int a;\n");
  CHECK(Cuda("#define A 1 /* x\n */ + 2\n") == "#define A 1 + 2\n");
}

TEST_CASE("In Python indents and strings count, comments do not") {
  CHECK(Python("a = 1  # one\n\n\nif a:\n    b = '# no'\n") == "a = 1\nif a:\n    b = '# no'\n");
  CHECK(Python("if a:\n  b\n") != Python("if a:\n    b\n"));
  CHECK(Python("a = 'x  y'\n") != Python("a = 'x y'\n"));
  CHECK(Python("a = \"it's\"  # it's\n") == "a = \"it's\"\n");
}

TEST_CASE("CUDA within a Python file is treated as C++") {
  const std::string one =
      "src = r\"\"\"\n#include <a.h>\n__global__ void k() {\n  int a;  // one\n}\n\"\"\"\n";
  const std::string other =
      "src = r\"\"\"\n#include <a.h>\n\n__global__  void k() {\n\tint a; /* two */\n}\n\"\"\"\n";
  CHECK(Python(one) == Python(other));
  CHECK(Python(one) != Python("src = r\"\"\"\n#include <b.h>\n__global__ void k() {}\n\"\"\"\n"));
  // A # there is no comment of Python's.
  CHECK(Python(one).find("#include <a.h>") != std::string::npos);
}

TEST_CASE("Broken sources end") {
  for (const char* source :
       {"", "\"", "'''", "/*", "R\"(", "a\\", "'", "\"\"\"#include", "//\\", "\\"}) {
    Cuda(source);
    Python(source);
  }
}
