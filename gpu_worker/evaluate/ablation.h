// Whether a solution needs its own kernels.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_ABLATION_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_ABLATION_H_

#include <memory>
#include <vector>

#include "gpu_worker/evaluate/candidate.h"
#include "gpu_worker/evaluate/verifier.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

// Runs the solution in a process of its own in which none of its launches has an effect.
// NO_CUSTOM_KERNEL when the outputs of every case are right all the same; PASSED when they are not,
// when it fails, or when what it launches is not known (then `report` gets a note).
Conclusion CheckAblated(Candidate::Options candidate, const Parcel& init,
                        const std::vector<std::shared_ptr<const TaskCase>>& cases, Verifier* judge,
                        RoleStarter* starter, Cancellation* cancellation,
                        kernelmosaic::v1::VerifyReport* report);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_ABLATION_H_
