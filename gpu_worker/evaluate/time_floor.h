// How fast a GPU could at best do what a reference does. Pure.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_TIME_FLOOR_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_TIME_FLOOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_worker/evaluate/dtype.h"

namespace kmosaic {

// Peaks by the vendor's data sheets, dense: bytes and floating-point operations a second.
struct GpuPeaks {
  double bandwidth = 0;
  double l2_bytes = 0;
  double fp64 = 0;  // tensor cores where they have it
  double tf32 = 0;  // where there are no tensor cores for it, float32
  double fp16 = 0;  // tensor cores, bfloat16 too
};

// By product name ("NVIDIA H200"); nothing for a GPU that is not in the table. Slices (MIG)
// have less than the whole GPU: the peak stays an upper bound.
std::optional<GpuPeaks> PeaksOf(std::string_view name);

struct CallWork {
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t parameter_bytes = 0;
  // Of the reference's matrix products, convolutions and attention.
  uint64_t multiply_adds = 0;
  // Of the outputs.
  DType dtype = DType::kFloat32;
};

struct TimeFloor {
  // Inputs and outputs moved once; what a result can be checked against.
  double memory_us = 0;
  // The larger of memory (with the parameters) and arithmetic, and which it was.
  double floor_us = 0;
  std::string bound;  // "memory", "arithmetic"
};

// float32 counts at TF32's rate, since products of float32 can be had from several of TF32 or
// bfloat16. Of the outputs only what does not fit into L2 has to reach memory within the call.
TimeFloor FloorOf(const CallWork& work, const GpuPeaks& peaks);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_TIME_FLOOR_H_
