// The part of RewriteCuda that handles declarations of shared memory.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_REWRITE_SHARED_H_
#define KMOSAIC_GPU_WORKER_EMULATION_REWRITE_SHARED_H_

#include "gpu_worker/emulation/masked_source.h"
#include "gpu_worker/emulation/text_edits.h"

namespace kmosaic {

// Declarations inside macros, and static ones outside of functions, are left to the macro that
// __shared__ is for the host compiler.
void RewriteSharedMemory(const MaskedSource& source, TextEdits* edits);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_REWRITE_SHARED_H_
