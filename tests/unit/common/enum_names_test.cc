#include "common/base/enum_names.h"

#include <catch2/catch.hpp>

namespace kmosaic {

TEST_CASE("every verdict has a name without prefix that parses back") {
  const auto* type = v1::Verdict_descriptor();
  for (int i = 0; i < type->value_count(); ++i) {
    auto verdict = static_cast<v1::Verdict>(type->value(i)->number());
    std::string name = VerdictName(verdict);
    CHECK(name.find("VERDICT_") == std::string::npos);
    if (verdict != v1::VERDICT_UNSPECIFIED) CHECK(ParseVerdict(name) == verdict);
  }
  CHECK(VerdictName(v1::VERDICT_WRONG_OUTPUT) == "WRONG_OUTPUT");
}

TEST_CASE("names of enums with several words lose the whole prefix") {
  CHECK(DeviceName(v1::DEVICE_KIND_EMULATED) == "emulated");
  CHECK(StopReasonName(v1::STOP_REASON_TURN_BUDGET) == "turn_budget");
  CHECK(FailureClassName(v1::FAILURE_CLASS_FINAL) == "final");
}

TEST_CASE("unknown names and numbers are not guessed at") {
  CHECK_FALSE(ParseDevice("tpu").has_value());
  CHECK_FALSE(ParseDevice("").has_value());
  CHECK_FALSE(ParseDevice("unspecified").has_value());
  CHECK(VerdictName(static_cast<v1::Verdict>(9999)) == "unknown(9999)");
}

TEST_CASE("a view set is named in the order given") {
  v1::ViewSet views;
  views.add_views(v1::VIEW_DESCRIPTION);
  views.add_views(v1::VIEW_SPEC);
  CHECK(ViewSetName(views) == "description+spec");
}

}  // namespace kmosaic
