#include "gpu_worker/evaluate/comparator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

Comparison Wrong(v1::Verdict verdict, std::string reason) {
  Comparison result;
  result.verdict = verdict;
  result.reason = std::move(reason);
  return result;
}

// Stands for anything beyond it (a wrong NaN, a wrong integer): reports hold finite numbers.
constexpr double kLargestRatio = 1e9;

bool IsSequence(const Value& value) {
  return value.kind == Value::Kind::kList || value.kind == Value::Kind::kTuple;
}

std::string Name(const std::string& path) {
  return path.empty() ? std::string("the output") : "output" + path;
}

// Empty when the two nest in the same way.
std::string StructureDifference(const Value& expected, const Value& got, const std::string& path) {
  if (IsSequence(expected) && IsSequence(got)) {
    if (expected.items.size() != got.items.size()) {
      return absl::StrCat(Name(path), " has ", got.items.size(), " items, expected ",
                          expected.items.size());
    }
    for (size_t i = 0; i < expected.items.size(); ++i) {
      std::string child =
          StructureDifference(expected.items[i], got.items[i], absl::StrCat(path, "[", i, "]"));
      if (!child.empty()) return child;
    }
    return "";
  }
  if (expected.kind != got.kind) {
    return absl::StrCat(Name(path), " is a ", KindName(got.kind), ", expected a ",
                        KindName(expected.kind));
  }
  if (expected.kind == Value::Kind::kDict) {
    if (expected.entries.size() != got.entries.size()) {
      return absl::StrCat(Name(path), " has ", got.entries.size(), " entries, expected ",
                          expected.entries.size());
    }
    for (size_t i = 0; i < expected.entries.size(); ++i) {
      if (expected.entries[i].first != got.entries[i].first) {
        return absl::StrCat(Name(path), " has no entry '", expected.entries[i].first, "'");
      }
      std::string child = StructureDifference(expected.entries[i].second, got.entries[i].second,
                                              absl::StrCat(path, ".", expected.entries[i].first));
      if (!child.empty()) return child;
    }
  }
  return "";
}

// "cuda" of "cuda:0".
std::string DeviceType(const std::string& device) { return device.substr(0, device.find(':')); }

enum class NumberClass { kFinite, kNaN, kPlusInfinity, kMinusInfinity };

NumberClass Classify(double value) {
  if (std::isnan(value)) return NumberClass::kNaN;
  if (std::isinf(value)) {
    return value > 0 ? NumberClass::kPlusInfinity : NumberClass::kMinusInfinity;
  }
  return NumberClass::kFinite;
}

std::vector<int64_t> Unravel(const Tensor& tensor, size_t component) {
  int64_t flat = static_cast<int64_t>(component / Components(*tensor.dtype));
  std::vector<int64_t> index(tensor.shape.size());
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    index[d] = flat % tensor.shape[d];
    flat /= tensor.shape[d];
  }
  return index;
}

// What the wrong part looks like.
std::string PatternWords(const TensorFacts& facts, size_t components) {
  if (facts.poisoned == facts.size) return "all poison (never written)";
  if (facts.nans == facts.size) return "all NaN";
  if (facts.zeros == facts.size && !facts.expected_all_zero) return "all zero";
  std::string what;
  if (facts.wrong_poisoned == facts.wrong) what = "never written";
  if (facts.wrong_zeros == facts.wrong && facts.wrong > 1) what = "zero";
  // A tail: everything from the first wrong element on, but for chance hits.
  uint64_t tail = facts.size - facts.at;
  if (facts.at > 0 && facts.wrong > 1 &&
      static_cast<double>(facts.wrong) >= 0.9 * static_cast<double>(tail)) {
    std::string words = absl::StrCat("tail from index ", facts.at / components);
    return what.empty() ? words : absl::StrCat(words, ", ", what);
  }
  return what.empty() ? what : absl::StrCat("wrong elements are ", what);
}

bool IsPoison(const Tensor& tensor, size_t component, uint8_t poison) {
  size_t width = ItemSize(*tensor.dtype) / Components(*tensor.dtype);
  std::string_view bytes = tensor.bytes().substr(component * width, width);
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](char c) { return static_cast<uint8_t>(c) == poison; });
}

std::string IndexText(const std::vector<int64_t>& index) {
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

class TensorComparison {
 public:
  TensorComparison(const Tensor& expected, const Tensor* expected64, const Tensor& got,
                   const CompareOptions& options)
      : expected_(expected), expected64_(expected64), got_(got), options_(options) {}

  TensorFacts Run() {
    if (IsFloating(*expected_.dtype)) {
      CompareFloating();
    } else {
      CompareExactly();
    }
    facts_.clean = facts_.wrong == 0 && !norm_exceeded_;
    facts_.zeros_pass = !zeros_wrong_;
    if (facts_.clean) return facts_;
    if (facts_.wrong == 0) facts_.at = worst_;
    facts_.expected = Expected(facts_.at);
    facts_.got = Got(facts_.at);
    return facts_;
  }

 private:
  double Got(size_t i) const { return Decode(*got_.dtype, got_.bytes().data(), i); }
  double Expected(size_t i) const { return Decode(*expected_.dtype, expected_.bytes().data(), i); }

  void Seen(double got, double expected, bool is_poison) {
    if (got == 0) ++facts_.zeros;
    if (std::isnan(got)) ++facts_.nans;
    if (expected != 0) facts_.expected_all_zero = false;
    if (is_poison) ++facts_.poisoned;
  }

  bool IsPoisoned(size_t i) const {
    return options_.poison.has_value() && IsPoison(got_, i, *options_.poison);
  }

  void MarkWrong(size_t i, double got, double tolerance) {
    if (facts_.wrong++ == 0) {
      facts_.at = i;
      facts_.tolerance = tolerance;
    }
    if (got == 0) ++facts_.wrong_zeros;
    if (IsPoisoned(i)) ++facts_.wrong_poisoned;
  }

  void CompareFloating() {
    ToleranceField field(expected_, expected64_, options_.tolerance);
    facts_.size = field.size();
    std::vector<double> got(field.block_size());
    std::vector<double> reference(field.block_size());
    std::vector<double> baseline(field.block_size());
    for (size_t first = 0; first < field.size(); first += field.block_size()) {
      size_t count = std::min(field.size() - first, field.block_size());
      DecodeRange(*got_.dtype, got_.bytes().data(), first, count, got.data());
      field.Decode(first, count, reference.data(), baseline.data());
      bool all_finite = AllFinite(got.data(), count) && AllFinite(reference.data(), count) &&
                        AllFinite(baseline.data(), count);
      if (!all_finite ||
          !CompareFinite(field, first, count, got.data(), reference.data(), baseline.data())) {
        for (size_t i = 0; i < count; ++i) {
          CompareOne(field, first + i, got[i], reference[i], baseline[i]);
        }
      }
    }
    facts_.norm = std::sqrt(squares_);
    facts_.norm_bound = field.NormBound();
    facts_.baseline_error = field.BaselineError();
    if (facts_.norm > facts_.norm_bound && facts_.wrong == 0) {
      norm_exceeded_ = true;
      facts_.tolerance = field.At(worst_);
      facts_.worst_ratio = std::max(facts_.worst_ratio, facts_.norm / facts_.norm_bound);
    }
    if (std::sqrt(zero_squares_) > facts_.norm_bound) zeros_wrong_ = true;
  }

  // A block in which everything is finite and right, as nearly all are; false, and nothing
  // counted, when something is wrong.
  bool CompareFinite(const ToleranceField& field, size_t first, size_t count, const double* got,
                     const double* reference, const double* baseline) {
    const ToleranceField::Bound bound = field.OfBlock(first);
    double squares = 0;
    double zero_squares = 0;
    double largest = 0;
    double worst = facts_.worst_ratio;
    size_t worst_at = worst_;
    size_t zeros = 0;
    size_t expected_zeros = 0;
    bool wrong = false;
    bool zeros_wrong = false;
    for (size_t i = 0; i < count; ++i) {
      double r = std::abs(reference[i]);
      double tolerance =
          bound.slope * r + 4 * std::max(bound.error, bound.accumulation * std::max(r, bound.size));
      double error = std::min(std::abs(got[i] - reference[i]), std::abs(got[i] - baseline[i]));
      double zero_error = std::min(r, std::abs(baseline[i]));
      squares += error * error;
      zero_squares += zero_error * zero_error;
      largest = std::max(largest, error);
      wrong |= error > tolerance;
      zeros_wrong |= zero_error > tolerance;
      zeros += got[i] == 0 ? 1 : 0;
      expected_zeros += baseline[i] == 0 ? 1 : 0;
      // Few numbers are worse than all before them, so there are few divisions.
      if (error > worst * tolerance) {
        worst = std::min(error / tolerance, kLargestRatio);
        worst_at = first + i;
      }
    }
    if (wrong) return false;
    squares_ += squares;
    zero_squares_ += zero_squares;
    facts_.max_error = std::max(facts_.max_error, largest);
    facts_.worst_ratio = worst;
    worst_ = worst_at;
    zeros_wrong_ |= zeros_wrong;
    facts_.zeros += zeros;
    if (expected_zeros != count) facts_.expected_all_zero = false;
    return true;
  }

  void CompareOne(const ToleranceField& field, size_t i, double got, double reference,
                  double baseline) {
    Seen(got, baseline, IsPoisoned(i));
    double tolerance = field.At(i, reference);
    bool reference_overflows =
        !std::isfinite(baseline) && !std::isfinite(RoundTo(*expected_.dtype, reference));
    auto error_of = [&](double value) {
      double error = std::numeric_limits<double>::infinity();
      if (std::isfinite(reference)) error = std::abs(value - reference);
      if (std::isfinite(baseline)) error = std::min(error, std::abs(value - baseline));
      return error;
    };
    double zero_error = error_of(0);
    if (reference_overflows || zero_error > tolerance) zeros_wrong_ = true;
    if (std::isfinite(tolerance)) zero_squares_ += zero_error * zero_error;
    NumberClass kind = Classify(got);
    if (kind != NumberClass::kFinite) {
      bool same =
          kind == Classify(baseline) || kind == Classify(RoundTo(*expected_.dtype, reference));
      if (!same) {
        MarkWrong(i, got, tolerance);
        facts_.worst_ratio = kLargestRatio;
      }
      return;
    }
    if (reference_overflows) {
      MarkWrong(i, got, tolerance);
      facts_.worst_ratio = kLargestRatio;
      return;
    }
    double error = error_of(got);
    if (std::isfinite(tolerance)) {
      squares_ += error * error;
      facts_.max_error = std::max(facts_.max_error, error);
      double ratio = error == 0 ? 0 : std::min(error / tolerance, kLargestRatio);
      if (ratio > facts_.worst_ratio) {
        facts_.worst_ratio = ratio;
        worst_ = i;
      }
    }
    if (error > tolerance) MarkWrong(i, got, tolerance);
  }

  // Indexes, counts and truth values have no tolerance, but a float64 run may settle a
  // tie in another way than the task's dtype does.
  void CompareExactly() {
    size_t width = ItemSize(*expected_.dtype);
    facts_.size = static_cast<size_t>(expected_.elements);
    bool have64 = expected64_ != nullptr && expected64_->dtype == expected_.dtype;
    const std::string zero(width, '\0');
    auto is_zero = [&](std::string_view bytes) { return bytes == zero; };
    bool same = got_.bytes() == expected_.bytes();
    for (size_t i = 0; i < facts_.size; ++i) {
      std::string_view want = expected_.bytes().substr(i * width, width);
      if (!is_zero(want) && !(have64 && is_zero(expected64_->bytes().substr(i * width, width)))) {
        zeros_wrong_ = true;
      }
      // Nothing more to learn.
      if (same && zeros_wrong_) return;
      std::string_view got = got_.bytes().substr(i * width, width);
      Seen(Got(i), Expected(i), IsPoisoned(i));
      if (got == want) continue;
      if (have64 && got == expected64_->bytes().substr(i * width, width)) continue;
      facts_.max_error = std::max(facts_.max_error, std::abs(Got(i) - Expected(i)));
      facts_.worst_ratio = kLargestRatio;
      MarkWrong(i, Got(i), 0);
    }
  }

  const Tensor& expected_;
  const Tensor* expected64_;
  const Tensor& got_;
  const CompareOptions& options_;
  TensorFacts facts_;
  size_t worst_ = 0;
  double squares_ = 0;
  // Of zeros in place of `got`.
  double zero_squares_ = 0;
  bool zeros_wrong_ = false;
  bool norm_exceeded_ = false;
};

std::optional<Comparison> CompareTensorForm(const Tensor& expected, const Tensor& got,
                                            const std::string& path) {
  if (expected.shape != got.shape) {
    return Wrong(v1::VERDICT_WRONG_SHAPE, absl::StrCat(Name(path), " is ", Describe(got),
                                                       ", expected ", Describe(expected)));
  }
  if (expected.dtype_name != got.dtype_name) {
    return Wrong(v1::VERDICT_WRONG_DTYPE, absl::StrCat(Name(path), " is ", Describe(got),
                                                       ", expected ", Describe(expected)));
  }
  if (!expected.device.empty() && !got.device.empty() &&
      DeviceType(expected.device) != DeviceType(got.device)) {
    return Wrong(v1::VERDICT_WRONG_LAYOUT, absl::StrCat(Name(path), " is on ", got.device,
                                                        ", expected on ", expected.device));
  }
  if (!expected.dtype.has_value()) {
    return Wrong(v1::VERDICT_UNSUPPORTED,
                 absl::StrCat(Name(path), " has dtype ", expected.dtype_name,
                              ", which this worker cannot compare"));
  }
  return std::nullopt;
}

Comparison CompareScalar(const Value& expected, const Value* expected64, const Value& got,
                         const std::string& path) {
  bool same = true;
  std::string words = KindName(expected.kind);
  switch (expected.kind) {
    case Value::Kind::kInt:
      same = got.integer == expected.integer ||
             (expected64 != nullptr && got.integer == expected64->integer);
      words = absl::StrCat("expected ", expected.integer, ", got ", got.integer);
      break;
    case Value::Kind::kBool:
      same = got.boolean == expected.boolean;
      words = absl::StrCat("expected ", expected.boolean, ", got ", got.boolean);
      break;
    case Value::Kind::kString:
      same = got.text == expected.text;
      words = "another text than expected";
      break;
    case Value::Kind::kFloat: {
      // A Python float that came from float32 arithmetic.
      double reference = expected64 == nullptr ? expected.number : expected64->number;
      double bound = 4 * std::abs(expected.number - reference) +
                     0x1p-24 * 64 * std::max(std::abs(reference), std::abs(expected.number));
      same = (std::isnan(got.number) && std::isnan(expected.number)) ||
             got.number == expected.number || std::abs(got.number - reference) <= bound;
      words = absl::StrCat("expected ", expected.number, ", got ", got.number);
      break;
    }
    default:
      break;
  }
  return same ? Comparison()
              : Wrong(v1::VERDICT_WRONG_OUTPUT, absl::StrCat(Name(path), ": ", words));
}

}  // namespace

OutputSummary Summarize(const Value& expected) {
  OutputSummary summary;
  for (const Leaf& leaf : Leaves(expected)) {
    const Tensor& tensor = leaf.value->tensor;
    bool counts = leaf.value->kind == Value::Kind::kTensor && tensor.dtype.has_value() &&
                  IsFloating(*tensor.dtype);
    FiniteSize size = counts ? SizeOfFinite(tensor) : FiniteSize();
    summary.mean_squares.push_back(size.mean_square);
    summary.non_finite = summary.non_finite || size.non_finite;
  }
  return summary;
}

void OutputScales::Add(const OutputSummary& expected) {
  squares_.resize(std::max(squares_.size(), expected.mean_squares.size()), 0);
  for (size_t i = 0; i < expected.mean_squares.size(); ++i) squares_[i] += expected.mean_squares[i];
  ++cases_;
}

std::vector<double> OutputScales::Hints() const {
  std::vector<double> hints;
  for (double squares : squares_) {
    hints.push_back(std::sqrt(squares / static_cast<double>(cases_)));
  }
  return hints;
}

Comparison ConcludeTensor(const Tensor& shape, const TensorFacts& facts, const std::string& path,
                          size_t leaf) {
  Comparison result;
  result.worst_error_ratio = facts.worst_ratio;
  result.zeros_pass = facts.zeros_pass;
  if (facts.clean) return result;
  result.verdict = v1::VERDICT_WRONG_OUTPUT;
  v1::Mismatch mismatch;
  mismatch.set_output(static_cast<uint32_t>(leaf));
  std::vector<int64_t> index = Unravel(shape, facts.at);
  for (int64_t i : index) mismatch.add_index(i);
  mismatch.set_expected(facts.expected);
  mismatch.set_got(facts.got);
  mismatch.set_tolerance(facts.tolerance);
  mismatch.set_wrong_elements(facts.wrong);
  mismatch.set_elements(facts.size);
  mismatch.set_max_error(facts.max_error);
  if (facts.wrong == 0) {
    mismatch.set_pattern("small error in the same direction or of lower precision everywhere");
    result.reason = absl::StrFormat(
        "%s is off by %.3g in its norm where %.3g is allowed, though no single element is: "
        "lower precision than the task's dtype, or a bias",
        Name(path), facts.norm, facts.norm_bound);
  } else {
    mismatch.set_pattern(PatternWords(facts, Components(*shape.dtype)));
    result.reason = absl::StrFormat(
        "%s: %d of %d elements are wrong; first at %s: expected %.9g, got %.9g (tolerance "
        "%.3g)%s",
        Name(path), facts.wrong, facts.size, IndexText(index), facts.expected, facts.got,
        facts.tolerance, mismatch.pattern().empty() ? "" : absl::StrCat("; ", mismatch.pattern()));
  }
  result.mismatch = std::move(mismatch);
  return result;
}

bool IsReference64(const Tensor& expected, const Tensor& expected64) {
  return expected64.dtype.has_value() && expected64.shape == expected.shape &&
         Components(*expected64.dtype) == Components(*expected.dtype);
}

std::optional<Comparison> CompareForm(const Value& expected, const Value& got) {
  if (std::string difference = StructureDifference(expected, got, ""); !difference.empty()) {
    return Wrong(v1::VERDICT_WRONG_SHAPE, difference);
  }
  std::vector<Leaf> want = Leaves(expected);
  std::vector<Leaf> have = Leaves(got);
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i].value->kind != Value::Kind::kTensor) continue;
    auto other = CompareTensorForm(want[i].value->tensor, have[i].value->tensor, want[i].path);
    if (other.has_value()) return other;
  }
  return std::nullopt;
}

Comparison CompareScalars(const Value& expected, const Value* expected64, const Value& got) {
  std::vector<Leaf> want = Leaves(expected);
  std::vector<Leaf> have = Leaves(got);
  std::vector<Leaf> want64;
  if (expected64 != nullptr && StructureDifference(expected, *expected64, "").empty()) {
    want64 = Leaves(*expected64);
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i].value->kind == Value::Kind::kTensor) continue;
    Comparison one = CompareScalar(*want[i].value, want64.empty() ? nullptr : want64[i].value,
                                   *have[i].value, want[i].path);
    if (one.verdict != v1::VERDICT_PASSED) return one;
  }
  return Comparison();
}

Comparison CompareOutputs(const Value& expected, const Value* expected64, const Value& got,
                          const CompareOptions& options) {
  if (auto other = CompareForm(expected, got); other.has_value()) return *other;
  Comparison result = CompareScalars(expected, expected64, got);
  if (result.verdict != v1::VERDICT_PASSED) return result;
  std::vector<Leaf> want = Leaves(expected);
  std::vector<Leaf> have = Leaves(got);
  std::vector<Leaf> want64;
  if (expected64 != nullptr && StructureDifference(expected, *expected64, "").empty()) {
    want64 = Leaves(*expected64);
  }
  result.baseline_errors.assign(want.size(), 0);
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i].value->kind != Value::Kind::kTensor) continue;
    const Tensor& tensor = want[i].value->tensor;
    const Tensor* reference64 = want64.empty() ? nullptr : &want64[i].value->tensor;
    if (reference64 != nullptr && !IsReference64(tensor, *reference64)) reference64 = nullptr;
    CompareOptions leaf_options = options;
    if (i < options.scale_hints.size()) leaf_options.tolerance.scale_hint = options.scale_hints[i];
    if (i < options.baseline_errors.size()) {
      leaf_options.tolerance.baseline_error = options.baseline_errors[i];
    }
    TensorFacts facts =
        TensorComparison(tensor, reference64, have[i].value->tensor, leaf_options).Run();
    Comparison one = ConcludeTensor(tensor, facts, want[i].path, i);
    result.worst_error_ratio = std::max(result.worst_error_ratio, one.worst_error_ratio);
    result.zeros_pass = result.zeros_pass && one.zeros_pass;
    result.baseline_errors[i] = facts.baseline_error;
    if (one.verdict != v1::VERDICT_PASSED) {
      one.worst_error_ratio = result.worst_error_ratio;
      return one;
    }
  }
  return result;
}

std::optional<Difference> FormDifference(const Value& before, const Value& after) {
  if (std::string difference = StructureDifference(before, after, ""); !difference.empty()) {
    return Difference{0, "", difference};
  }
  std::vector<Leaf> old_leaves = Leaves(before);
  std::vector<Leaf> new_leaves = Leaves(after);
  for (size_t i = 0; i < old_leaves.size(); ++i) {
    const Value& a = *old_leaves[i].value;
    const Value& b = *new_leaves[i].value;
    bool same = true;
    if (a.kind == Value::Kind::kTensor) {
      same = a.tensor.shape == b.tensor.shape && a.tensor.dtype_name == b.tensor.dtype_name;
    } else {
      same = a.integer == b.integer && a.boolean == b.boolean && a.text == b.text &&
             (a.number == b.number || (std::isnan(a.number) && std::isnan(b.number)));
    }
    if (!same) return Difference{i, old_leaves[i].path, "its content"};
  }
  return std::nullopt;
}

std::optional<Difference> FirstDifference(const Value& before, const Value& after) {
  if (auto form = FormDifference(before, after); form.has_value()) return form;
  std::vector<Leaf> old_leaves = Leaves(before);
  std::vector<Leaf> new_leaves = Leaves(after);
  for (size_t i = 0; i < old_leaves.size(); ++i) {
    if (old_leaves[i].value->tensor.bytes() != new_leaves[i].value->tensor.bytes()) {
      return Difference{i, old_leaves[i].path, "its content"};
    }
  }
  return std::nullopt;
}

}  // namespace kmosaic
