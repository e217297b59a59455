#include "gpu_worker/evaluate/counted_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gpu_worker/evaluate/device_findings.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

// An order of threads that is neither the usual one nor its reverse.
constexpr char kRandomSchedule[] = "random:1";

}  // namespace

CountedRun RunCounted(Candidate::Options options, const Parcel& init, const TaskCase& task_case,
                      RoleStarter* starter, Cancellation* cancellation) {
  options.schedule = kRandomSchedule;
  Candidate candidate(std::move(options), starter, cancellation);
  if (Conclusion loaded = candidate.Load(init); !loaded.passed()) return loaded;
  return candidate.Run(task_case);
}

Conclusion ConcludeCounted(CountedRun counted, const TaskCase& task_case, Verifier* judge,
                           v1::EvaluationReport* report) {
  v1::VerifyReport& verify = *report->mutable_verify();
  if (auto* failed = std::get_if<Conclusion>(&counted)) {
    if (failed->verdict == v1::VERDICT_OUT_OF_BOUNDS) return *failed;
    // It ran without counting: that it does not with it need be no fault of it.
    verify.add_notes(absl::StrCat("work not counted: ", failed->reason));
    return Conclusion();
  }
  const RunResult& result = std::get<RunResult>(counted);
  verify.add_checks("every access, random order of threads");
  if (auto seen = Conclude(result.findings); seen.has_value()) {
    if (seen->verdict == v1::VERDICT_OUT_OF_BOUNDS || seen->verdict == v1::VERDICT_DATA_RACE) {
      return *seen;
    }
  }
  auto looked = judge->Judge(task_case, result.outputs);
  if (auto* failed = std::get_if<Conclusion>(&looked)) return *failed;
  const Comparison& compared = std::get<Comparison>(looked);
  if (compared.verdict != v1::VERDICT_PASSED) {
    return {v1::VERDICT_DATA_RACE,
            absl::StrCat("right when threads run in one order, wrong in a random one (a missing "
                         "barrier, or a race between blocks): ",
                         compared.reason),
            compared.mismatch};
  }
  for (const std::string& note : Notes(result.findings)) verify.add_notes(note);
  if (result.work.has_value()) *report->mutable_work() = *result.work;
  return Conclusion();
}

void DiagnoseCounted(const CountedRun& counted, v1::VerifyReport* report) {
  auto* result = std::get_if<RunResult>(&counted);
  if (result == nullptr) return;
  for (const DeviceFinding& finding : result->findings) {
    std::string kind = finding.kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    report->add_notes(absl::StrCat(kind, ": ", Words(finding)));
  }
}

}  // namespace kmosaic
