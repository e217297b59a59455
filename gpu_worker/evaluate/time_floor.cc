#include "gpu_worker/evaluate/time_floor.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kmosaic {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMega = 1e6;

GpuPeaks Peaks(double gb_per_s, double l2_mb, double fp64, double tf32, double fp16) {
  return {gb_per_s * kGiga, l2_mb * kMega, fp64 * kTera, tf32 * kTera, fp16 * kTera};
}

}  // namespace

// NVIDIA's data sheets of each product, tensor-core rates without sparsity: B200 (Blackwell
// datasheet, HGX B200 per GPU), H200 and H200 NVL, H100 (SXM5, PCIe, NVL), A100 (40 and
// 80 GB; the faster memory stands for both), A30, L40S, L40, L4, A10; GeForce RTX 4090 and
// 5090 from the Ada and Blackwell architecture white papers. Names as the driver gives them;
// the first that is part of a name counts.
std::optional<GpuPeaks> PeaksOf(std::string_view name) {
  static const std::array<std::pair<std::string_view, GpuPeaks>, 15> kTable = {{
      {"B200", Peaks(8000, 126, 40, 1125, 2250)},
      {"H200", Peaks(4800, 50, 67, 494.7, 989.4)},
      {"H100 NVL", Peaks(3938, 50, 60, 417.5, 835)},
      {"H100 PCIe", Peaks(2039, 50, 51, 378, 756)},
      {"H100", Peaks(3352, 50, 67, 494.7, 989.4)},
      {"A100", Peaks(2039, 40, 19.5, 156, 312)},
      {"A30", Peaks(933, 24, 10.3, 82, 165)},
      {"L40S", Peaks(864, 96, 1.4, 183, 362)},
      {"L40", Peaks(864, 96, 1.4, 90.5, 181)},
      {"L4", Peaks(300, 48, 0.5, 60, 121)},
      {"A10G", Peaks(600, 6, 1, 70, 140)},
      {"A10", Peaks(600, 6, 1, 62.5, 125)},
      {"RTX 4090", Peaks(1008, 72, 1.3, 82.6, 330.3)},
      {"RTX 5090", Peaks(1792, 96, 1.6, 104.8, 419)},
      {"T4", Peaks(320, 4, 0.3, 8.1, 65)},
  }};
  for (const auto& [part, peaks] : kTable) {
    if (name.find(part) != std::string_view::npos) return peaks;
  }
  return std::nullopt;
}

TimeFloor FloorOf(const CallWork& work, const GpuPeaks& peaks) {
  TimeFloor floor;
  double written = std::max(0.0, static_cast<double>(work.output_bytes) - peaks.l2_bytes);
  double moved = static_cast<double>(work.input_bytes) + written;
  floor.memory_us = 1e6 * moved / peaks.bandwidth;
  double memory = 1e6 * (moved + static_cast<double>(work.parameter_bytes)) / peaks.bandwidth;
  double rate = peaks.tf32;
  if (work.dtype == DType::kFloat64 || work.dtype == DType::kComplex128) rate = peaks.fp64;
  if (work.dtype == DType::kFloat16 || work.dtype == DType::kBFloat16) rate = peaks.fp16;
  double arithmetic = 1e6 * 2 * static_cast<double>(work.multiply_adds) / rate;
  floor.floor_us = std::max(memory, arithmetic);
  floor.bound = arithmetic > memory ? "arithmetic" : "memory";
  return floor;
}

}  // namespace kmosaic
