#include "cli/tasklint/probes.h"

#include <catch2/catch.hpp>
#include <set>

using namespace kmosaic;

namespace {

v1::Oracle WithReference() {
  v1::Oracle oracle;
  oracle.set_reference("# the reference\nclass Model: pass\n");
  return oracle;
}

std::string FindingOf(const Probe& probe, v1::Verdict verdict, const std::string& reason = "") {
  v1::EvaluationReport report;
  report.set_verdict(verdict);
  report.set_reason(reason);
  std::string finding;
  CHECK(JudgeProbe(probe, report, finding).ok());
  return finding;
}

}  // namespace

TEST_CASE("Each probe is the reference with a ModelNew that launches a kernel") {
  std::vector<Probe> probes = CheatProbes(WithReference());
  probes.push_back(SelfProbe(WithReference()));
  std::set<std::string> sources;
  for (const Probe& probe : probes) {
    CHECK(probe.source.rfind("# the reference", 0) == 0);
    CHECK(probe.source.find("class ModelNew(Model)") != std::string::npos);
    CHECK(probe.source.find("<<<1, 1>>>") != std::string::npos);
    sources.insert(probe.source);
  }
  CHECK(sources.size() == probes.size());
}

TEST_CASE("Where the task allows lower precision, it is not tried") {
  v1::Oracle oracle = WithReference();
  size_t all = CheatProbes(oracle).size();
  oracle.set_reduced_precision(true);
  CHECK(CheatProbes(oracle).size() == all - 1);
}

TEST_CASE("A cheat is a finding only when it passes") {
  Probe cheat{"zeros", false, "all zeros pass as a solution", ""};
  CHECK(FindingOf(cheat, v1::VERDICT_WRONG_OUTPUT).empty());
  CHECK(FindingOf(cheat, v1::VERDICT_RUNTIME_ERROR).empty());
  CHECK(FindingOf(cheat, v1::VERDICT_PASSED) == "all zeros pass as a solution");
}

TEST_CASE("What is wrong with the reference is told by the verdict about it") {
  Probe self = SelfProbe(WithReference());
  CHECK(FindingOf(self, v1::VERDICT_PASSED).empty());
  CHECK(FindingOf(self, v1::VERDICT_RUNTIME_ERROR,
                  "RuntimeError: kmosaic lint: the answer is not finite") ==
        "an answer holds NaN or infinity");
  CHECK(FindingOf(self, v1::VERDICT_NONDETERMINISTIC, "x") ==
        "the reference does not agree with itself: x");
  CHECK(FindingOf(self, v1::VERDICT_MODIFIED_INPUT, "input[0]") ==
        "the reference changes an input that is not in mutable_inputs: input[0]");
  CHECK(FindingOf(self, v1::VERDICT_UNSUPPORTED, "x") ==
        "the reference, given as a solution, is judged UNSUPPORTED: x");
}

TEST_CASE("A failed machine says nothing about the task") {
  v1::EvaluationReport report;
  report.set_verdict(v1::VERDICT_INFRASTRUCTURE);
  std::string finding;
  CHECK(absl::IsUnavailable(JudgeProbe(SelfProbe(WithReference()), report, finding)));
  CHECK(finding.empty());
}
