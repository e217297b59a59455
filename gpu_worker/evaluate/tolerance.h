// How far an output element may lie from the reference.
//
// With r = the reference in float64, b = the reference in the task's dtype ("eager"),
// u = unit roundoff of the output's dtype and K = reduction length, element i passes when
//
//   |y_i - r_i| <= 2 u |r_i| + 4 max(E_i, a s_i)          (or the same around b_i)
//
//   E_i  the baseline's own error near i: max over the block of |b - r| - u |r| (what
//        rounding the result alone does not explain), and at least 4 times the root mean
//        square of that over the whole tensor
//   a    relative error of an honest computation:
//        float32            2^-15
//        float64            2^-53 sqrt(max(K, 4096))
//        float16, bfloat16  max(2^-24 sqrt(max(K, 4096)), u): accumulation in float32
//                           and a few intermediate roundings to the task's dtype
//        the task accepts reduced precision: at least 2^-11 (TF32's unit roundoff)
//   s_i  size of what was added up near i: max(|r_i|, sqrt(L_i G)), L_i and G the root
//        mean squares of r over the block and over the whole tensor
//
// A whole tensor also has to keep ||y - r|| <= 4 max(||b - r||, (a + u) ||r||), which sees
// a bias or a lower precision that hides below each element's own bound.
//
// Where it comes from. Rounding errors of a sum of K terms grow like u sqrt(K) for
// rounding that behaves randomly (Higham, "Accuracy and Stability of Numerical
// Algorithms", 2nd ed., 2.8 and 4.2) relative to the root mean square of the partial
// sums, which the result's own size stands for. The factor 4 and the baseline's error as the
// measure are what low-precision attention kernels are commonly tested with (error at most a small
// multiple of the eager implementation's error against a reference of higher precision).
// For float32 4 a = 1.2e-4: room for sums of 2^18 terms in another order, for fast device functions
// (the CUDA C++ Programming Guide, "Mathematical Functions", gives __expf 2 + floor(|1.173 x|)
// ulp), dozens of chained operations, and a normalisation of values that are small beside its
// epsilon. Public kernels that are right were seen to use 0.9e-4 of it. It stays below what one
// rounding of the inputs to float16 or TF32 (2^-11) does to a sum of products of both signs:
// about 2.8e-4 of the sum's usual size, in each element and in the norm. Where all products have
// one sign, that effect shrinks by sqrt(K) and is not seen from about six terms on.
// G in s_i allows cancellation inside a tensor; the geometric mean keeps a small row
// beside a large one from becoming free.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_TOLERANCE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_TOLERANCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_worker/evaluate/value.h"

namespace kmosaic {

struct ToleranceOptions {
  // Longest sum that an output element depends on; nothing when it is not known.
  std::optional<int64_t> reduction;
  // Elements of the largest input: stands for the reduction length, up to 65,536, where
  // that is not known.
  int64_t largest_input = 1;
  // The task accepts arithmetic of TF32's precision.
  bool reduced_precision = false;
  // Multiplies a: for inputs that the task did not choose, which may be worse conditioned (a
  // variance in one pass, when the values are small beside a bias).
  double slack = 1;
  // ||b - r|| / ||r|| as other cases of the task showed it; counts where this one has no reference
  // in float64, which then would be expected to be as far from b.
  double baseline_error = 0;
  // Root mean square of this output over other seeds of the same values; 0 when there is
  // none. Small outputs (a loss) can be close to zero by chance, their inputs are not.
  double scale_hint = 0;
};

// What of the formula does not depend on values.
struct ToleranceRule {
  double unit = 0;          // u
  double accumulation = 0;  // a
  size_t block = 1;         // real numbers that share a block
  double factor = 0;
  size_t smallest_block = 0;  // tensors with fewer numbers take their size from the hint
};
// `expected` is a floating tensor; `have64`: there is a reference in float64.
ToleranceRule RuleOf(const Tensor& expected, bool have64, const ToleranceOptions& options);

// Bounds for one floating tensor. Immutable; refers to the tensors it was made from.
class ToleranceField {
 public:
  // `expected` is in the task's dtype and decides u; `expected64` is the same in float64
  // (same shape) or null, then `expected` stands in for it and a is doubled.
  ToleranceField(const Tensor& expected, const Tensor* expected64, const ToleranceOptions& options);

  // Real numbers in the tensor (elements, twice that for complex), and how many of them
  // share a block. A block's numbers are decoded at once, since tensors hold up to 10^9 of them.
  size_t size() const { return size_; }
  size_t block_size() const { return block_; }
  // Reference in float64 and in the task's dtype, for the `count` numbers from `first` on.
  void Decode(size_t first, size_t count, double* reference, double* baseline) const;
  // Largest allowed distance for the `index`-th real number, whose reference is given;
  // infinite where the reference is not finite (those are compared by class).
  double At(size_t index, double reference) const;
  double At(size_t index) const;
  // The same within a block of finite references: slope |r| + 4 max(error, a max(|r|, size)).
  struct Bound {
    double slope = 0;
    double error = 0;
    double accumulation = 0;
    double size = 0;
  };
  Bound OfBlock(size_t index) const;
  // ||b - r|| / ||r||; 0 without a reference in float64.
  double BaselineError() const { return baseline_error_; }
  // Bound of ||y - r|| over the finite elements.
  double NormBound() const { return norm_bound_; }

 private:
  const Tensor& expected_;
  const Tensor* expected64_;
  size_t size_ = 0;
  size_t block_ = 1;
  double unit_ = 0;
  double accumulation_ = 0;
  double global_rms_ = 0;
  double error_floor_ = 0;
  double norm_bound_ = 0;
  double baseline_error_ = 0;
  std::vector<double> block_rms_;
  std::vector<double> block_error_;
};

// ||x||^2 / n over the finite elements of a floating tensor, 0 for one without any, and whether
// it has others.
struct FiniteSize {
  double mean_square = 0;
  bool non_finite = false;
};
FiniteSize SizeOfFinite(const Tensor& tensor);

// "a" of the formula above.
double AccumulationError(DType dtype, const ToleranceOptions& options);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_TOLERANCE_H_
