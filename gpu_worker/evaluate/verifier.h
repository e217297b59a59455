// Decides whether a built solution does what its task asks for.
//
// The order, cheapest first, stopping at the first that fails:
//   public seeds    fixed, their expected outputs are cached, they may be named in feedback
//   repeat          the first public seed again in the same process: same bits
//   secret seeds    from the operating system, logged, never named
//   value families  other magnitudes and patterns of input values, one secret seed each
//   second process  other weights, another order of threads (emulated) and another poison
// After every call: what the device saw, inputs unchanged, structure, values, kernels
// launched. A wrong output is looked into before it is reported: does another order of
// threads, or other contents of fresh memory, or the reference itself, change it?
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_VERIFIER_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_VERIFIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gpu_worker/evaluate/candidate.h"
#include "gpu_worker/evaluate/comparator.h"
#include "gpu_worker/evaluate/examiner.h"
#include "gpu_worker/evaluate/reference.h"
#include "gpu_worker/evaluate/verdict.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// Public seeds, in order.
std::vector<uint64_t> PublicSeeds(uint32_t count);

struct VerifyOptions {
  kernelmosaic::v1::Oracle oracle;
  // What the candidates have in common; schedule and poison are set per process.
  Candidate::Options candidate;
  // The device runs threads in an order that can be chosen, and counts launches.
  bool emulated = true;
  std::vector<uint64_t> public_seeds;
  std::vector<uint64_t> secret_seeds;
  // Of the constructors, for one of the secret seeds; every other case has the candidate's.
  std::optional<uint64_t> secret_weight_seed;
};

// For one evaluation; not thread-safe.
class Verifier {
 public:
  // All outlive it.
  Verifier(VerifyOptions options, Reference* reference, Examiner* examiner, RoleStarter* starter,
           Cancellation* cancellation);

  // Fills `report.verify`, `report.work` (of the first public seed) and `report.output`.
  Conclusion Verify(kernelmosaic::v1::EvaluationReport* report);

  // The outputs of a call made elsewhere, on a case of the task's own values.
  std::variant<Comparison, Conclusion> Judge(const TaskCase& task_case, const Parcel& got);

  // Whether the task can tell anything apart at these shapes, on the first public seed and
  // without a candidate: PASSED, a degenerate INVALID_TASK, or how the reference fails.
  Conclusion VerifyTask();

 private:
  using CasePtr = std::shared_ptr<const TaskCase>;
  using OrComparison = std::variant<Comparison, Conclusion>;

  Conclusion Run(kernelmosaic::v1::EvaluationReport* report);
  // With the weights of `task_case`.
  std::variant<std::unique_ptr<Candidate>, Conclusion> StartCandidate(const std::string& schedule,
                                                                      uint8_t poison,
                                                                      const TaskCase& task_case);
  // One call with all checks. `first_outputs` gets the outputs when not null.
  Conclusion Check(Candidate& candidate, const TaskCase& task_case, Parcel* outputs,
                   kernelmosaic::v1::EvaluationReport* report);
  // Whether the call changed an input that it may not change; PASSED when not.
  Conclusion CheckInputs(const TaskCase& task_case, const Parcel& after);
  OrComparison Compare(const TaskCase& task_case, const Parcel& got, uint8_t poison) const;
  // Takes the case into the usual sizes of outputs; PASSED, or the machine's trouble.
  Conclusion AddScale(const TaskCase& task_case);
  // The cause of a wrong output: the task, an order of threads, unwritten memory.
  Conclusion Explain(Conclusion wrong, const TaskCase& task_case);
  Conclusion CheckRepeat(Candidate& candidate, const TaskCase& task_case, const Parcel& first,
                         kernelmosaic::v1::EvaluationReport* report);
  // Another process, with threads in another order and other memory contents. `first`: the
  // outputs of the first process, null where it has other weights.
  Conclusion CheckSecondProcess(const TaskCase& task_case, const Parcel* first,
                                kernelmosaic::v1::EvaluationReport* report);
  // INVALID_TASK when outputs of zeros passed all cases so far.
  Conclusion ConcludeTask() const;
  // Whether outputs that took no work would pass this case.
  void JudgeTask(const Comparison& passed);
  bool IsSecret(const TaskCase& task_case) const {
    return task_case.weight_seed.has_value() || public_.count(task_case.seed) == 0;
  }
  void Note(const std::string& note);
  // Notes `words` when two calls gave other bits; PASSED, or what went wrong.
  Conclusion NoteDifference(const Parcel& first, const Parcel& again, const std::string& words);

  const VerifyOptions options_;
  Reference* const reference_;
  Examiner* const examiner_;
  RoleStarter* const starter_;
  Cancellation* const cancellation_;
  const std::set<uint64_t> public_;
  Parcel init_;
  // Of the native cases so far.
  OutputScales scales_;
  // Largest of the cases so far (Comparison).
  std::vector<double> baseline_errors_;
  int judged_cases_ = 0;
  int zeros_pass_ = 0;
  double worst_ratio_ = 0;
  std::vector<std::string> notes_;
  CasePtr first_case_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_VERIFIER_H_
