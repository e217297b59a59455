#include "gpu_worker/compile/build_log.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a short log is kept whole, without colours and without build directories") {
  std::string log =
      "\x1b[01m/var/cache/build/abc/ext0/kernel.cu:3:5:\x1b[0m error: 'x' was not declared\n"
      "    3 |   x = 1;\n"
      "      |   ^\n";
  TrimmedLog trimmed = TrimLog(log, 4096, {"/var/cache/build/abc/ext0/"});
  CHECK(trimmed.text ==
        "kernel.cu:3:5: error: 'x' was not declared\n    3 |   x = 1;\n      |   ^\n");
  CHECK(trimmed.dropped_bytes == 0);
}

TEST_CASE("a single error after megabytes of warnings is what remains") {
  std::string log;
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&log, "a.cu:", i, ":1: warning: unused variable 'v", i, "'\n    ", i,
                    " | int v;\n      |     ^\n");
  }
  log +=
      "a.cu: In function 'void f()':\na.cu:9:3: error: expected ';' before 'return'\n"
      "    9 |   int y\n      |        ^\n";
  TrimmedLog trimmed = TrimLog(log, 2000, {});
  CHECK(Has(trimmed.text, "In function 'void f()'"));
  CHECK(Has(trimmed.text, "error: expected ';' before 'return'"));
  CHECK(Has(trimmed.text, "    9 |   int y"));
  CHECK(trimmed.text.size() < 2100);
  CHECK(trimmed.dropped_bytes > 500'000);
  CHECK(Has(trimmed.text,
            absl::StrCat("[", trimmed.dropped_bytes, " bytes of compiler output left out]")));
}

TEST_CASE("of hundreds of errors the first are kept, in order, and the tools' own") {
  std::string log;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&log, "k.cu(", i + 1, "): error: identifier \"undefined_", i,
                    "\" is undefined\n      undefined_", i, ";\n      ^\n\n");
  }
  log += "ptxas error   : Entry function 'k' uses too much shared data (0x11040 bytes)\n";
  TrimmedLog trimmed = TrimLog(log, 1500, {});
  CHECK(Has(trimmed.text, "undefined_0\""));
  CHECK(Has(trimmed.text, "undefined_1\""));
  CHECK(trimmed.text.find("undefined_0") < trimmed.text.find("undefined_1"));
  CHECK(Has(trimmed.text, "too much shared data"));
  CHECK_FALSE(Has(trimmed.text, "undefined_299\""));
}

TEST_CASE("a linker's error survives") {
  std::string log(100'000, 'w');
  log += "\nld.lld: error: undefined symbol: missing()\n>>> referenced by k.cu\n";
  CHECK(Has(TrimLog(log, 1000, {}).text, "undefined symbol: missing()"));
}

TEST_CASE("one endless message leaves room for the next") {
  std::string log = "a.cu:1:1: error: no matching function\n";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&log, "a.cu:1:1: note: candidate ", i, "\n");
  log += "b.cu:2:2: error: second thing\n";
  TrimmedLog trimmed = TrimLog(log, 3000, {});
  CHECK(Has(trimmed.text, "no matching function"));
  CHECK(Has(trimmed.text, "second thing"));
}

TEST_CASE("any bytes become valid text within the limit") {
  std::string log;
  for (int i = 0; i < 200'000; ++i) log += static_cast<char>((i * 7919) % 256);
  size_t limit = GENERATE(size_t{0}, size_t{10}, size_t{333}, size_t{4096});
  TrimmedLog trimmed = TrimLog(log, limit, {});
  CHECK(ToValidUtf8(trimmed.text) == trimmed.text);
  CHECK(trimmed.text.size() <= limit + 100);
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "\xE2\x82\xAC";
  trimmed = TrimLog("a.cu:1:1: error: " + wide + "\n", limit, {});
  CHECK(ToValidUtf8(trimmed.text) == trimmed.text);
}

}  // namespace
}  // namespace kmosaic
