#include "gpu_worker/evaluate/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kmosaic {
namespace {

// See the formula in tolerance.h.
constexpr double kFactor = 4;
constexpr int64_t kShortestReduction = 4096;
constexpr int64_t kLongestAssumedReduction = 65'536;
constexpr double kFloat32Unit = 0x1p-24;
constexpr double kFloat32AccumulationCap = 0x1p-15;
constexpr double kTf32Unit = 0x1p-11;
// Blocks follow rows where rows are of a useful length.
constexpr size_t kSmallestBlock = 32;
constexpr size_t kLargestBlock = 1024;

}  // namespace

double AccumulationError(DType dtype, const ToleranceOptions& options) {
  int64_t reduction = options.reduction.value_or(
      std::min<int64_t>(options.largest_input, kLongestAssumedReduction));
  double growth = std::sqrt(static_cast<double>(std::max(reduction, kShortestReduction)));
  double unit = UnitRoundoff(dtype);
  double error = 0;
  if (unit > kFloat32Unit) {
    error = std::max(kFloat32Unit * growth, unit);
  } else if (unit == kFloat32Unit) {
    error = std::min(unit * growth, kFloat32AccumulationCap);
  } else {
    error = unit * growth;
  }
  return options.reduced_precision ? std::max(error, kTf32Unit) : error;
}

ToleranceField::ToleranceField(const Tensor& expected, const Tensor* expected64,
                               const ToleranceOptions& options)
    : expected_(expected), expected64_(expected64) {
  size_ = static_cast<size_t>(expected.elements) * Components(*expected.dtype);
  size_t row = expected.shape.empty() ? 1 : static_cast<size_t>(expected.shape.back());
  block_ = std::clamp(row * Components(*expected.dtype), kSmallestBlock, kLargestBlock);
  unit_ = UnitRoundoff(*expected.dtype);
  accumulation_ = AccumulationError(*expected.dtype, options) * (expected64 == nullptr ? 2 : 1);

  size_t blocks = (size_ + block_ - 1) / block_;
  block_rms_.assign(blocks, 0);
  block_error_.assign(blocks, 0);
  double total = 0;
  double total_error = 0;
  double total_excess = 0;
  size_t finite = 0;
  for (size_t b = 0; b < blocks; ++b) {
    double sum = 0;
    size_t count = 0;
    size_t end = std::min(size_, (b + 1) * block_);
    for (size_t i = b * block_; i < end; ++i) {
      double reference = Reference(i);
      double baseline = Baseline(i);
      if (!std::isfinite(reference) || !std::isfinite(baseline)) continue;
      double error = std::abs(baseline - reference);
      double excess = std::max(0.0, error - unit_ * std::abs(reference));
      sum += reference * reference;
      total_error += error * error;
      total_excess += excess * excess;
      block_error_[b] = std::max(block_error_[b], excess);
      ++count;
    }
    block_rms_[b] = count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
    total += sum;
    finite += count;
  }
  double count = static_cast<double>(std::max<size_t>(finite, 1));
  global_rms_ = std::sqrt(total / count);
  error_floor_ = 4 * std::sqrt(total_excess / count);
  double scale = std::max(std::sqrt(total), options.scale_hint * std::sqrt(count));
  norm_bound_ = kFactor * std::max(std::sqrt(total_error), (accumulation_ + unit_) * scale);
  // Small outputs: the hint is the better measure of both local and global size.
  if (options.scale_hint > global_rms_) {
    if (size_ < kSmallestBlock) {
      for (double& rms : block_rms_) rms = std::max(rms, options.scale_hint);
    }
    global_rms_ = options.scale_hint;
  }
}

double ToleranceField::Reference(size_t index) const {
  return expected64_ == nullptr ? Baseline(index)
                                : Decode(*expected64_->dtype, expected64_->bytes().data(), index);
}

double ToleranceField::Baseline(size_t index) const {
  return Decode(*expected_.dtype, expected_.bytes().data(), index);
}

double ToleranceField::At(size_t index) const {
  double reference = std::abs(Reference(index));
  if (!std::isfinite(reference)) return std::numeric_limits<double>::infinity();
  size_t block = index / block_;
  double size = std::max(reference, std::sqrt(block_rms_[block] * global_rms_));
  double error = std::max({block_error_[block], error_floor_, accumulation_ * size});
  return 2 * unit_ * reference + kFactor * error;
}

}  // namespace kmosaic
