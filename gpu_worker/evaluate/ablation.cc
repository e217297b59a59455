#include "gpu_worker/evaluate/ablation.h"

#include <algorithm>
#include <utility>

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

// Launches are counted and run nothing. Whoever waits for a kernel then is not waited for long.
constexpr char kAblatedSchedule[] = "ablated";
constexpr absl::Duration kAblatedRun = absl::Seconds(10);

// Whatever else it comes to: it needs its kernels.
Conclusion NeedsThem(const Conclusion& failed) {
  return failed.verdict == v1::VERDICT_INFRASTRUCTURE ? failed : Conclusion();
}

bool HasElements(const Value& value) {
  for (const Leaf& leaf : Leaves(value)) {
    if (leaf.value->tensor.elements > 0) return true;
  }
  return false;
}

}  // namespace

Conclusion CheckAblated(Candidate::Options options, const Parcel& init,
                        const std::vector<std::shared_ptr<const TaskCase>>& cases, Verifier* judge,
                        RoleStarter* starter, Cancellation* cancellation,
                        v1::VerifyReport* report) {
  options.schedule = kAblatedSchedule;
  options.limits.run = std::min(options.limits.run, kAblatedRun);
  Candidate candidate(std::move(options), starter, cancellation);
  if (Conclusion loaded = candidate.Load(init); !loaded.passed()) return NeedsThem(loaded);
  bool has_elements = false;
  for (const auto& task_case : cases) {
    has_elements = has_elements || HasElements(task_case->expected.value);
    auto ran = candidate.Run(*task_case);
    if (auto* failed = std::get_if<Conclusion>(&ran)) return NeedsThem(*failed);
    const RunResult& result = std::get<RunResult>(ran);
    if (!result.launches.has_value()) {
      report->add_notes(
          "the solution looks up launching functions by their names: whether it needs its own "
          "kernels is not known");
      return Conclusion();
    }
    auto looked = judge->Judge(*task_case, result.outputs);
    if (auto* failed = std::get_if<Conclusion>(&looked)) return *failed;
    if (std::get<Comparison>(looked).verdict != v1::VERDICT_PASSED) return Conclusion();
  }
  if (!has_elements) return Conclusion();
  return {v1::VERDICT_NO_CUSTOM_KERNEL,
          "the outputs are right also when none of the solution's own kernels runs: something else "
          "computes them",
          {}};
}

}  // namespace kmosaic
