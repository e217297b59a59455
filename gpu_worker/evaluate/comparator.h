// Decides whether a candidate's outputs are those of the reference. Pure: works on
// copies in this process's memory, knows nothing of processes.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_COMPARATOR_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_COMPARATOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu_worker/evaluate/tolerance.h"
#include "gpu_worker/evaluate/value.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {

struct CompareOptions {
  ToleranceOptions tolerance;
  // One per leaf of the expected outputs (ToleranceOptions::scale_hint); may be empty.
  std::vector<double> scale_hints;
  // The same of ToleranceOptions::baseline_error.
  std::vector<double> baseline_errors;
  // Byte that fresh memory was filled with: a run of it was never written.
  std::optional<uint8_t> poison;
};

// What the sizes of values are.
struct OutputSummary {
  // Over the finite numbers of each leaf; 0 for what is no floating tensor.
  std::vector<double> mean_squares;
  // A floating tensor has an infinity or NaN.
  bool non_finite = false;
};
OutputSummary Summarize(const Value& expected);

// Usual size of each output: root mean square per leaf over the cases of one kind of values.
class OutputScales {
 public:
  void Add(const OutputSummary& expected);
  // One per leaf, 0 for what is no floating tensor; empty before the first Add.
  std::vector<double> Hints() const;

 private:
  std::vector<double> squares_;
  size_t cases_ = 0;
};

struct Comparison {
  // PASSED, WRONG_SHAPE, WRONG_DTYPE, WRONG_LAYOUT, WRONG_OUTPUT, or UNSUPPORTED for a
  // dtype that cannot be compared.
  kernelmosaic::v1::Verdict verdict = kernelmosaic::v1::VERDICT_PASSED;
  // One line for people; empty when PASSED.
  std::string reason;
  // Set for WRONG_OUTPUT of a tensor; seed and family are the caller's to fill in.
  std::optional<kernelmosaic::v1::Mismatch> mismatch;
  // Largest error as a multiple of its tolerance, over everything compared; 1e9 stands
  // for more and for what has no size (a wrong NaN, a wrong integer).
  double worst_error_ratio = 0;
  // Whether zeros in place of every tensor would pass as well; of use when PASSED.
  bool zeros_pass = true;
  // Of each leaf, 0 where it was not seen: how far the expected values are from those in float64,
  // relative to their norm. When PASSED.
  std::vector<double> baseline_errors;
};

// `expected64` has the structure of `expected`, or is null. Structure first (lists and
// tuples are the same), then shape, dtype, device, then values: floating elements within
// ToleranceField, NaN and infinities where the reference has them and nowhere else,
// everything else equal to `expected` or to `expected64`.
Comparison CompareOutputs(const Value& expected, const Value* expected64, const Value& got,
                          const CompareOptions& options);

// What a comparison of one tensor saw. Counts are of real numbers.
struct TensorFacts {
  // Right: no number is off, and the norm is within its bound. Then only the three below count.
  bool clean = true;
  double worst_ratio = 0;
  bool zeros_pass = true;
  double baseline_error = 0;

  uint64_t size = 0;
  uint64_t zeros = 0;
  uint64_t nans = 0;
  uint64_t poisoned = 0;  // hold the poison in every byte
  uint64_t wrong = 0;
  uint64_t wrong_poisoned = 0;
  uint64_t wrong_zeros = 0;
  bool expected_all_zero = true;
  // The first wrong number, or the worst where none is wrong by itself.
  uint64_t at = 0;
  double expected = 0;
  double got = 0;
  double tolerance = 0;
  double max_error = 0;
  double norm = 0;
  double norm_bound = 0;
};
// Of the tensor at leaf number `leaf`, which is at `path`. `shape` is the expected tensor's.
Comparison ConcludeTensor(const Tensor& shape, const TensorFacts& facts, const std::string& path,
                          size_t leaf);

// Parts of CompareOutputs that need no tensor's bytes. What is wrong with structure, shapes,
// dtypes and devices; a dtype that cannot be compared is UNSUPPORTED.
std::optional<Comparison> CompareForm(const Value& expected, const Value& got);
// What is no tensor, of values that have the same form.
Comparison CompareScalars(const Value& expected, const Value* expected64, const Value& got);
// Whether a tensor of the float64 run can stand for `expected`.
bool IsReference64(const Tensor& expected, const Tensor& expected64);

// Indexes (in Leaves order) of the leaves that differ in any byte or in structure;
// nothing when they are the same.
struct Difference {
  size_t leaf = 0;
  std::string path;
  std::string what;
};
std::optional<Difference> FirstDifference(const Value& before, const Value& after);
// The same without a look at the bytes of tensors.
std::optional<Difference> FormDifference(const Value& before, const Value& after);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_COMPARATOR_H_
