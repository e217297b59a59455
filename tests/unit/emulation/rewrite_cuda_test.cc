#include "gpu_worker/emulation/rewrite_cuda.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace kmosaic {
namespace {

std::string Rewrite(const std::string& source) {
  const auto result = RewriteCuda(source);
  INFO(result.status());
  REQUIRE(result.ok());
  // The number of lines is kept, so that errors name the candidate's own.
  CHECK(std::count(result->begin(), result->end(), '\n') ==
        std::count(source.begin(), source.end(), '\n'));
  return *result;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("what is no CUDA passes unchanged") {
  for (const std::string text :
       {"", "int f(int a) { return a << 3 >> 1; }", "// k<<<1, 2>>>()\n", "\"k<<<1,2>>>()\"",
        "/* __shared__ float x[3]; */", "template<class T> T f(A<B<T>> x);"}) {
    CHECK(Rewrite(text) == text);
  }
}

TEST_CASE("a launch becomes a call with shape, name and arguments") {
  CHECK(Rewrite("k<<<g, b>>>(x, n);") ==
        "::kmosaic_emulation::Launch(::kmosaic_emulation::LaunchShape(g, b), \"k\", "
        "[&](auto... kmosaic_arguments) { k(kmosaic_arguments...); }, x, n);");
  CHECK(Has(Rewrite("k<<<1, 2>>>();"), "k(kmosaic_arguments...); });"));
}

TEST_CASE("kernel names may have templates, namespaces and parentheses") {
  CHECK(Has(Rewrite("a::k<float, 16><<<1, 2>>>(x);"), "\"a::k<float, 16>\""));
  CHECK(Has(Rewrite("::k<sizeof(int), (3 > 2)><<<1, 2>>>(x);"), "{ ::k<sizeof(int), (3 > 2)>("));
  CHECK(Has(Rewrite("A<int>::k<<<1, 2>>>(x);"), "\"A<int>::k\""));
  CHECK(Has(Rewrite("(f ? k1 : k2)<<<1, 2>>>(x);"), "{ (f ? k1 : k2)("));
  CHECK(Has(Rewrite("if (y) k<T><<<1, 2>>>(x);"), "if (y) ::kmosaic_emulation::Launch("));
}

TEST_CASE("configurations may hold calls, templates and braces") {
  CHECK(Has(Rewrite("k<<<dim3(f(1, 2), {3}), b, n * sizeof(float), s>>>(x);"),
            "LaunchShape(dim3(f(1, 2), {3}), b, n * sizeof(float), s)"));
}

TEST_CASE("literal nulls among the arguments convert to what the parameter is") {
  const std::string out = Rewrite("k<<<1, 2>>>(0, NULL, f(0), 10, x0);");
  CHECK(Has(out, "::kmosaic_emulation::Zero{}, nullptr, f(0), 10, x0)"));
}

TEST_CASE("launches inside macros keep their continuation lines") {
  const std::string out = Rewrite("#define RUN(T) \\\n  k<T><<<g, \\\n  b>>>(x)\n");
  CHECK(Has(out, "\\\n  b), \"k<T>\""));
}

TEST_CASE("several and nested launches are all rewritten") {
  const std::string out =
      Rewrite("a<<<1, 2>>>(x); b<<<1, 2>>>([&] { c<<<3, 4>>>(); return 1; }());");
  CHECK(Has(out, "\"a\""));
  CHECK(Has(out, "\"b\""));
  CHECK(Has(out, "\"c\""));
  CHECK_FALSE(Has(out, "<<<"));
}

TEST_CASE("an incomplete launch is the source's fault, with its line") {
  for (const std::string text :
       {"\n\nk<<<1, 2;", "\n\nk<<<1, 2>>>;", "\n\nk<<<1, 2>>>(x", "\n\n<<<1, 2>>>(x)"}) {
    const auto result = RewriteCuda(text);
    CAPTURE(text);
    REQUIRE(result.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(Has(std::string(result.status().message()), "line 3"));
  }
}

TEST_CASE("dynamic shared memory becomes a pointer to the launch's memory") {
  const std::string out =
      Rewrite("__global__ void k() { extern __shared__ __align__(16) unsigned char raw[]; }");
  CHECK(Has(out, "unsigned char (*const raw)"));
  CHECK(Has(out, "::kmosaic_emu_dynamic_shared()"));
  CHECK_FALSE(Has(out, "extern"));
  CHECK_FALSE(Has(out, "__align__"));
  CHECK(Has(Rewrite("extern __shared__ float s[];"), "DynamicShared<"));
  CHECK(Has(Rewrite("namespace a { extern __shared__ float s[]; }"), "DynamicShared<"));
  CHECK(Has(Rewrite("void k() { extern __shared__ float s[][4]; }"), "(*const s)[4]"));
}

TEST_CASE("static shared variables become references to guarded memory") {
  const std::string out = Rewrite(
      "__global__ void k() { __shared__ float a[16][17], b; if (x) { __shared__ int c; } }");
  CHECK(Has(out, "auto& a = kmosaic_shared0.a"));
  CHECK(Has(out, "auto& b = kmosaic_shared0.b"));
  CHECK(Has(out, "auto& c = kmosaic_shared1.c"));
  CHECK(Has(out, "sizeof(KmosaicShared0) + sizeof(KmosaicShared1) <= 49152"));
  CHECK(Has(Rewrite("void k() { __shared__ typename R::Storage s; }"), "auto& s = "));
  CHECK(Has(Rewrite("void k() { static __shared__ volatile int s[3]; }"), "volatile int s[3]; }"));
  CHECK(Has(Rewrite("void k() { __shared__ __align__(16) float s[4]; }"), "auto& s = "));
  CHECK(Has(Rewrite("void k() { __shared__ Pair<int, float> s[4]; }"), "auto& s = "));
}

TEST_CASE("shared variables of separate kernels are not added up") {
  const std::string out = Rewrite("void a() { __shared__ int x; } void b() { __shared__ int y; }");
  CHECK_FALSE(Has(out, "sizeof(KmosaicShared0) + sizeof(KmosaicShared1)"));
}

TEST_CASE("shared variables outside of functions and in macros are left to the macro") {
  const std::string global = "__shared__ int x[3];\n";
  CHECK(Rewrite(global) == global);
  const std::string macro = "#define TILE __shared__ float t[4]\n";
  CHECK(Rewrite(macro) == macro);
}

TEST_CASE("the qualifier vanishes in a parameter list") {
  CHECK(Rewrite("void f(__shared__ float* s);") == "void f( float* s);");
}

}  // namespace
}  // namespace kmosaic
