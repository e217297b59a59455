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

TEST_CASE("A Python or a torch that is too old is told with what is needed") {
  Check check = JudgePython("/opt/python3 (by PATH)", {"3.8.10", "2.4.1", "1.24.4"});
  CHECK(check.result == CheckResult::kFail);
  CHECK(check.found == "3.8.10 is too old: 3.9 or newer is needed, /opt/python3 (by PATH)");
  CHECK(check.fix == "name a newer Python that has torch and numpy with KMOSAIC_PYTHON");
  check = JudgePython("/opt/python3", {"3.10.2", "1.13.1+cu117", "1.24.4"});
  CHECK(check.result == CheckResult::kFail);
  CHECK(check.found == "torch 1.13.1+cu117 is too old: 2.3 or newer is needed, /opt/python3");
  CHECK(check.fix == "pip install 'torch>=2.3' there, or name another Python with KMOSAIC_PYTHON");
}

TEST_CASE("A Python that will do is told with what it has, one that lacks something with that") {
  Check check = JudgePython("/opt/python3", {"3.9.2", "2.10.0a0+git", "2.0.2"});
  CHECK(check.result == CheckResult::kOk);
  CHECK(check.found == "3.9.2, torch 2.10.0a0+git, numpy 2.0.2, /opt/python3");
  CHECK(check.fix.empty());
  CHECK(JudgePython("p", {"3.13.0"}).found == "3.13.0 without torch, p");
  CHECK(JudgePython("p", {"3.13.0", "2.8.0"}).found == "3.13.0 without numpy, p");
  CHECK(JudgePython("p", {}).result == CheckResult::kFail);
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
