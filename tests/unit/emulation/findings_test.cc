#include "gpu_worker/emulation/runtime/findings.h"

#include <catch2/catch.hpp>

namespace kmosaic::emulation {
namespace {

TEST_CASE("a finding is one line of JSON whatever its texts hold") {
  Finding finding;
  finding.kind = "out_of_bounds";
  finding.kernel = "k<\"x\\y\">\n";
  finding.detail = std::string("\x01\xc3", 2);
  const std::string json = ToJson(finding);
  CHECK(json.find('\n') == std::string::npos);
  CHECK(json.find(R"(k<\"x\\y\">\u000a)") != std::string::npos);
  CHECK(json.find(R"(\u0001\u00c3)") != std::string::npos);
}

TEST_CASE("the same finding is counted, and the number of kept ones is bounded") {
  Findings findings;
  for (int i = 0; i < 3; ++i) findings.Add({"deadlock", "k", {}, {}, "same"});
  CHECK(findings.AllAsJson().find("\"count\":3") != std::string::npos);
  for (int i = 0; i < 1000; ++i) findings.Add({"deadlock", "k", {}, {}, std::to_string(i)});
  std::size_t lines = 0;
  const std::string all = findings.AllAsJson();
  for (std::size_t at = all.find("\"kind\""); at != std::string::npos;
       at = all.find("\"kind\"", at + 1)) {
    ++lines;
  }
  CHECK(lines == Findings::kMaxKept);
  findings.Clear();
  CHECK(findings.AllAsJson() == "[]");
}

}  // namespace
}  // namespace kmosaic::emulation
