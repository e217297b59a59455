#include "gpu_worker/evaluate/tolerance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kmosaic {
namespace {

// See the formula in tolerance.h.
constexpr double kFactor = 4;
constexpr int64_t kShortestReduction = 4096;
constexpr int64_t kLongestAssumedReduction = 65'536;
constexpr double kFloat32Unit = 0x1p-24;
constexpr double kFloat32Accumulation = 0x1p-15;
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
    error = kFloat32Accumulation;
  } else {
    error = unit * growth;
  }
  return options.slack * (options.reduced_precision ? std::max(error, kTf32Unit) : error);
}

ToleranceRule RuleOf(const Tensor& expected, bool have64, const ToleranceOptions& options) {
  ToleranceRule rule;
  if (!IsFloating(*expected.dtype)) return rule;
  size_t row = expected.shape.empty() ? 1 : static_cast<size_t>(expected.shape.back());
  rule.unit = UnitRoundoff(*expected.dtype);
  rule.accumulation = AccumulationError(*expected.dtype, options) * (have64 ? 1 : 2);
  rule.block = std::clamp(row * Components(*expected.dtype), kSmallestBlock, kLargestBlock);
  rule.factor = kFactor;
  rule.smallest_block = kSmallestBlock;
  return rule;
}

ToleranceField::ToleranceField(const Tensor& expected, const Tensor* expected64,
                               const ToleranceOptions& options)
    : expected_(expected), expected64_(expected64) {
  size_ = static_cast<size_t>(expected.elements) * Components(*expected.dtype);
  ToleranceRule rule = RuleOf(expected, expected64 != nullptr, options);
  block_ = rule.block;
  unit_ = rule.unit;
  accumulation_ = rule.accumulation;

  size_t blocks = (size_ + block_ - 1) / block_;
  block_rms_.assign(blocks, 0);
  block_error_.assign(blocks, 0);
  double total = 0;
  double total_error = 0;
  double total_excess = 0;
  size_t finite = 0;
  for (size_t b = 0; b < blocks; ++b) {
    double sum = 0;
    double errors = 0;
    double excesses = 0;
    double largest = 0;
    size_t first = b * block_;
    size_t length = std::min(size_ - first, block_);
    std::array<double, kLargestBlock> references;
    std::array<double, kLargestBlock> baselines;
    Decode(first, length, references.data(), baselines.data());
    bool all_finite = AllFinite(references.data(), length) && AllFinite(baselines.data(), length);
    size_t count = 0;
    for (size_t i = 0; i < length; ++i) {
      double reference = references[i];
      double baseline = baselines[i];
      if (!all_finite && (!std::isfinite(reference) || !std::isfinite(baseline))) continue;
      double error = std::abs(baseline - reference);
      double excess = std::max(0.0, error - unit_ * std::abs(reference));
      sum += reference * reference;
      errors += error * error;
      excesses += excess * excess;
      largest = std::max(largest, excess);
      ++count;
    }
    block_error_[b] = largest;
    total_error += errors;
    total_excess += excesses;
    block_rms_[b] = count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
    total += sum;
    finite += count;
  }
  double count = static_cast<double>(std::max<size_t>(finite, 1));
  global_rms_ = std::sqrt(total / count);
  error_floor_ = 4 * std::sqrt(total_excess / count);
  double scale = std::max(std::sqrt(total), options.scale_hint * std::sqrt(count));
  double norm_error = std::sqrt(total_error);
  if (expected64 == nullptr) {
    error_floor_ = 4 * options.baseline_error * global_rms_;
    norm_error = options.baseline_error * scale;
  } else if (total > 0) {
    baseline_error_ = std::sqrt(total_error / total);
  }
  norm_bound_ = kFactor * std::max(norm_error, (accumulation_ + unit_) * scale);
  // Small outputs: the hint is the better measure of both local and global size.
  if (options.scale_hint > global_rms_) {
    if (size_ < kSmallestBlock) {
      for (double& rms : block_rms_) rms = std::max(rms, options.scale_hint);
    }
    global_rms_ = options.scale_hint;
  }
}

void ToleranceField::Decode(size_t first, size_t count, double* reference, double* baseline) const {
  DecodeRange(*expected_.dtype, expected_.bytes().data(), first, count, baseline);
  const Tensor& source = expected64_ == nullptr ? expected_ : *expected64_;
  DecodeRange(*source.dtype, source.bytes().data(), first, count, reference);
}

ToleranceField::Bound ToleranceField::OfBlock(size_t index) const {
  size_t block = index / block_;
  return {2 * unit_, std::max(block_error_[block], error_floor_), accumulation_,
          std::sqrt(block_rms_[block] * global_rms_)};
}

double ToleranceField::At(size_t index, double reference) const {
  if (!std::isfinite(reference)) return std::numeric_limits<double>::infinity();
  Bound bound = OfBlock(index);
  double size = std::max(std::abs(reference), bound.size);
  return bound.slope * std::abs(reference) +
         kFactor * std::max(bound.error, bound.accumulation * size);
}

double ToleranceField::At(size_t index) const {
  double reference = 0;
  double baseline = 0;
  Decode(index, 1, &reference, &baseline);
  return At(index, reference);
}

FiniteSize SizeOfFinite(const Tensor& tensor) {
  size_t size = static_cast<size_t>(tensor.elements) * Components(*tensor.dtype);
  std::array<double, kLargestBlock> numbers;
  double total = 0;
  size_t finite = 0;
  for (size_t first = 0; first < size; first += numbers.size()) {
    size_t length = std::min(size - first, numbers.size());
    DecodeRange(*tensor.dtype, tensor.bytes().data(), first, length, numbers.data());
    bool all_finite = AllFinite(numbers.data(), length);
    double sum = 0;
    for (size_t i = 0; i < length; ++i) {
      if (!all_finite && !std::isfinite(numbers[i])) continue;
      sum += numbers[i] * numbers[i];
      ++finite;
    }
    total += sum;
  }
  return {finite == 0 ? 0 : total / static_cast<double>(finite), finite != size};
}

}  // namespace kmosaic
