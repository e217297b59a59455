#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "gpu_worker/emulation/rewrite_cuda.h"
#include "gpu_worker/emulation/unsupported.h"

namespace kmosaic {
namespace {

// Pieces that a scanner could stumble over, put together at random.
const std::vector<std::string>& Pieces() {
  static const std::vector<std::string> pieces = {
      "<<<",       ">>>",     "(",          ")",      "{",
      "}",         "[",       "]",          "<",      ">",
      ",",         ";",       "\"",         "'",      "R\"x(",
      ")x\"",      "//",      "/*",         "*/",     "\\\n",
      "\n",        "#",       "__shared__", "extern", "static",
      "k",         "::",      "=",          "->",     "0",
      "NULL",      "asm",     "volatile",   "float",  "include",
      "\\",        " ",       "\r",         "\xff",   std::string(1, '\0'),
      "__align__", "alignas", ":",          "1'0",    "template",
      "#define"};
  return pieces;
}

TEST_CASE("any text is rewritten or refused, and nothing else happens") {
  std::mt19937 random(20240601);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const int count = static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) text += Pieces()[random() % Pieces().size()];
    const auto result = RewriteCuda(text);
    if (result.ok()) {
      CHECK(result->size() < 100 * text.size() + 1000);
    } else {
      CHECK(result.status().code() == absl::StatusCode::kInvalidArgument);
    }
    FindUnsupported(text);
  }
}

TEST_CASE("a right program that is cut short or damaged does no harm") {
  const std::string program =
      "#include <cuda_runtime.h>\n#define N 4 // x\n"
      "template <class T> __global__ void k(T* p, int n) {\n"
      "  extern __shared__ char raw[]; __shared__ T tile[N][N + 1], other;\n"
      "  const char* s = R\"(<<<)\"; p[0] = '\\'' + 1'000;\n}\n"
      "void f(float* p) { k<float><<<dim3(1, 2), 32, 0>>>(p, 0); }\n";
  std::mt19937 random(7);
  for (std::size_t cut = 0; cut <= program.size(); ++cut) {
    static_cast<void>(RewriteCuda(program.substr(0, cut)));
    static_cast<void>(RewriteCuda(program.substr(cut)));
    std::string damaged = program;
    for (int i = 0; i < 3; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random() & 0xff);
    }
    static_cast<void>(RewriteCuda(damaged));
  }
  CHECK(RewriteCuda(program).ok());
}

TEST_CASE("long runs of one character take no more than linear time") {
  constexpr std::size_t kLength = 200'000;
  for (const std::string piece :
       {"(", ")", "{", "<", ">", "\"", "'", "/*", "#\n", "<<<", "a<", "volatile ", "__shared__ "}) {
    std::string text;
    while (text.size() < kLength) text += piece;
    static_cast<void>(RewriteCuda(text));
    FindUnsupported(text);
  }
  SUCCEED();
}

}  // namespace
}  // namespace kmosaic
