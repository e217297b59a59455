// The part of RewriteCuda that handles kernel launches.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_REWRITE_LAUNCHES_H_
#define KMOSAIC_GPU_WORKER_EMULATION_REWRITE_LAUNCHES_H_

#include "absl/status/status.h"
#include "gpu_worker/emulation/masked_source.h"
#include "gpu_worker/emulation/text_edits.h"

namespace kmosaic {

absl::Status RewriteLaunches(const MaskedSource& source, TextEdits* edits);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_REWRITE_LAUNCHES_H_
