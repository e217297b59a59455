// Compiles and runs known programs through the whole chain before a worker offers itself.
#ifndef KMOSAIC_GPU_WORKER_SELF_TEST_H_
#define KMOSAIC_GPU_WORKER_SELF_TEST_H_

#include <string>

#include "absl/status/status.h"
#include "gpu_worker/evaluate/cancellation.h"
#include "gpu_worker/evaluate/evaluator.h"

namespace kmosaic {

// A right kernel has to pass and one that skips the last element has to be found wrong:
// so the chain runs, and it can say no. The status says what went wrong and where. `salt` (no
// line breaks) goes into the sources: with a new one nothing comes from the cache of artifacts.
absl::Status RunSelfTest(const Evaluator& evaluator, const std::string& salt,
                         Cancellation* cancellation);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SELF_TEST_H_
