#include "gpu_worker/emulation/masked_source.h"

#include <catch2/catch.hpp>
#include <string>

namespace kmosaic {
namespace {

std::string Code(const std::string& text) { return std::string(MaskedSource(text).code()); }

TEST_CASE("comments and literals are blanked, code and newlines stay") {
  CHECK(Code("a /* <<< */ b") == "a           b");
  CHECK(Code("a // <<<\nb") == "a       \nb");
  CHECK(Code("f(\"<<<\\\"x\");") == "f(\"______\");");
  CHECK(Code("'\"' + x") == "'_' + x");
  CHECK(Code("1'000'000 + 'a'") == "1'000'000 + '_'");
  CHECK(Code("R\"d(a)\" b)d\" + c") == "R\"_________\" + c");
  CHECK(Code("/* open") == "       ");
  CHECK(Code("\"open\nnext") == "\"____\nnext");
}

TEST_CASE("directives are known with their continuation lines") {
  const std::string text = "#define A \\\n  k<<<1, 2>>>()\nint x;";
  const MaskedSource source(text);
  CHECK(source.InDirective(text.find("<<<")));
  CHECK_FALSE(source.InDirective(text.find("int")));
}

TEST_CASE("brackets are matched in both directions") {
  const std::string text = "f(a[1], {2}) + \")\"";
  const MaskedSource source(text);
  CHECK(source.FindClose(1) == text.find(") +"));
  CHECK(source.FindOpen(text.find(") +")) == 1);
  CHECK(MaskedSource("((").FindClose(0) == MaskedSource::kNone);
  CHECK(MaskedSource("))").FindOpen(1) == MaskedSource::kNone);
}

TEST_CASE("identifiers are found as whole words") {
  const MaskedSource source("my_asm asmx asm");
  CHECK(source.FindIdentifier("asm", 0) == 12);
  CHECK_FALSE(source.HasIdentifier("my"));
}

}  // namespace
}  // namespace kmosaic
