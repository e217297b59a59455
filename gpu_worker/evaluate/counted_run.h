// One more call of a solution on the emulated device, in a build that checks and counts every
// access, with threads in a random order.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_COUNTED_RUN_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_COUNTED_RUN_H_

#include <cstdint>
#include <variant>

#include "gpu_worker/evaluate/candidate.h"
#include "gpu_worker/evaluate/verifier.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// Why there is no result, or the result.
using CountedRun = std::variant<RunResult, Conclusion>;

// `candidate.artifact` is the build that counts.
CountedRun RunCounted(Candidate::Options candidate, const Parcel& init, const TaskCase& task_case,
                      RoleStarter* starter, Cancellation* cancellation);

// Of a solution that passed so far: what it did is put into the report. OUT_OF_BOUNDS and
// DATA_RACE are for the solution to answer for; that it does not run with counting is not.
Conclusion ConcludeCounted(CountedRun counted, const TaskCase& task_case, Verifier* judge,
                           kernelmosaic::v1::EvaluationReport* report);

// Of a solution whose output was wrong: notes on what the check of every access saw.
void DiagnoseCounted(const CountedRun& counted, kernelmosaic::v1::VerifyReport* report);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_COUNTED_RUN_H_
