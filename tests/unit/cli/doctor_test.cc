#include <catch2/catch.hpp>

#include "cli/doctor/check.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

TEST_CASE("A self-test that passed is told with what it ran on") {
  Check check = JudgeSelfTest(0, {"some noise",
                                  "{\"device\":\"emulated\",\"name\":\"emulated "
                                  "x86-64\",\"sandbox\":\"on\",\"limits\":\"cgroup "
                                  "v2\",\"self_test\":{\"passed\":true,\"seconds\":4.0}}"});
  CHECK(check.result == CheckResult::kOk);
  CHECK(check.found == "known kernels pass on emulated x86-64 in 4.0s; sandbox on, cgroup v2");
}

TEST_CASE("A self-test that failed is told with its cause") {
  Check check = JudgeSelfTest(1, {"{\"self_test\":{\"passed\":false,\"cause\":\"no bwrap\"}}"});
  CHECK(check.result == CheckResult::kFail);
  CHECK(check.found == "no bwrap");
  CHECK_FALSE(check.fix.empty());
  CHECK(JudgeSelfTest(139, {}).result == CheckResult::kFail);
  CHECK(JudgeSelfTest(139, {"{\"self_test\":{\"passed\":true}}"}).result == CheckResult::kFail);
}

TEST_CASE("doctor names each check, and says no when the programs are missing") {
  TestHost test;
  test.host.env["PATH"] = "";
  CHECK(test.Run({"doctor", "--quick", "-o", "json"}) == 1);
  bool programs = false;
  for (const auto& check : test.Json()) {
    CHECK_FALSE(check["found"].get<std::string>().empty());
    if (check["result"] != "ok") CHECK_FALSE(check["fix"].get<std::string>().empty());
    if (check["check"] == "programs") programs = check["result"] == "fail";
  }
  CHECK(programs);
}
