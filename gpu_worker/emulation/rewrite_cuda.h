// Turns CUDA C++ into C++ that a host compiler takes together with the emulation headers. Only
// what has no other way is rewritten; everything else (qualifiers, intrinsics) is macros and
// functions. Line numbers are kept.
//
//   k<T><<<grid, block, bytes, stream>>>(a, 0)
//     -> kmosaic_emulation::Launch(LaunchShape(grid, block, bytes, stream), "k<T>",
//                                  [&](auto... x) { k<T>(x...); }, a, Zero{})
//   extern __shared__ float s[];   -> float* const s = (float*)kmosaic_emu_dynamic_shared();
//   __shared__ float t[16], u;     -> references into memory that ends at a guard page, poisoned
//                                     at each block's begin; a compile error above 48 KiB
#ifndef KMOSAIC_GPU_WORKER_EMULATION_REWRITE_CUDA_H_
#define KMOSAIC_GPU_WORKER_EMULATION_REWRITE_CUDA_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kmosaic {

// Takes any text, in time linear in its size but for nested launches. InvalidArgument when a
// launch is incomplete (no closing >>> or no argument list); what is no CUDA passes unchanged.
absl::StatusOr<std::string> RewriteCuda(std::string_view source);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EMULATION_REWRITE_CUDA_H_
