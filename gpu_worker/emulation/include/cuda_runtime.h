// Stands before the toolkit's cuda_runtime.h: the toolkit gives types and prototypes in host
// mode, the emulation headers the rest of the language.
#ifndef KMOSAIC_EMULATION_CUDA_RUNTIME_H_
#define KMOSAIC_EMULATION_CUDA_RUNTIME_H_

// All toolkit headers with host code must be read before __CUDA_ARCH__ is defined.
#include_next <cuda_runtime.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kmosaic_emulation/language.h"
// Order matters from here on: each uses the one before.
#include "kmosaic_emulation/synchronisation.h"
#include "kmosaic_emulation/atomics.h"
#include "kmosaic_emulation/intrinsics.h"
#include "kmosaic_emulation/half_intrinsics.h"
#include "kmosaic_emulation/runtime_templates.h"

#endif  // KMOSAIC_EMULATION_CUDA_RUNTIME_H_
