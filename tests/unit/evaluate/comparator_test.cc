#include "gpu_worker/evaluate/comparator.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/unit/evaluate/tensors.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using testing::Normal;
using testing::TensorOf;
using testing::TupleOf;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> Filled(size_t count, double value) { return std::vector<double>(count, value); }

// A reference in two precisions: `exact` and its rounding to `dtype`.
struct Task {
  Value expected;
  Value expected64;
  CompareOptions options;

  Task(DType dtype, std::vector<int64_t> shape, const std::vector<double>& exact)
      : expected(TensorOf(dtype, shape, exact)),
        expected64(TensorOf(DType::kFloat64, shape, exact)) {}

  Comparison Judge(const std::vector<double>& numbers) const {
    return Judge(TensorOf(*expected.tensor.dtype, expected.tensor.shape, numbers));
  }
  Comparison Judge(const Value& got) const {
    return CompareOutputs(expected, &expected64, got, options);
  }
};

std::vector<double> Softmax(std::vector<double> row) {
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x);
  for (double& x : row) x /= sum;
  return row;
}

// C = A B with n x k and k x n, each product and sum through `round`.
std::vector<double> MatMul(const std::vector<double>& a, const std::vector<double>& b, size_t n,
                           size_t k, const std::function<double(double)>& input,
                           const std::function<double(double)>& sum_of) {
  std::vector<double> c(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t l = 0; l < k; ++l) {
        sum = sum_of(sum + sum_of(input(a[i * k + l]) * input(b[l * n + j])));
      }
      c[i * n + j] = sum;
    }
  }
  return c;
}

double Same(double x) { return x; }
double Single(double x) { return static_cast<float>(x); }
double Half(double x) { return RoundTo(DType::kFloat16, x); }
double Tf32(double x) {
  return std::ldexp(std::nearbyint(std::ldexp(x, 10 - std::ilogb(x))), std::ilogb(x) - 10);
}

TEST_CASE(
    "outputs far below any fixed tolerance are judged: zeros and the mean fail on a wide softmax") {
  // Largest value about 1e-4, most below 1e-5.
  Task task(DType::kFloat32, {1, 65536}, Softmax(Normal(65536, 1)));
  Comparison zeros = task.Judge(Filled(65536, 0));
  CHECK(zeros.verdict == v1::VERDICT_WRONG_OUTPUT);
  REQUIRE(zeros.mismatch.has_value());
  CHECK(zeros.mismatch->pattern() == "all zero");
  CHECK(zeros.mismatch->wrong_elements() == 65536);
  CHECK(task.Judge(Filled(65536, 1.0 / 65536)).verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("an honest float32 sum passes in any order, at any length") {
  size_t k = GENERATE(size_t{16}, size_t{512}, size_t{4096});
  size_t n = 12;
  bool positive = GENERATE(false, true);
  std::vector<double> a = Normal(n * k, 2);
  std::vector<double> b = Normal(k * n, 3);
  if (positive) {
    for (double& x : a) x = Single(std::abs(x));
    for (double& x : b) x = Single(std::abs(x));
  }
  Task task(DType::kFloat32, {12, 12}, MatMul(a, b, n, k, Same, Same));
  task.options.tolerance.reduction = static_cast<int64_t>(k);
  Comparison honest = task.Judge(MatMul(a, b, n, k, Same, Single));
  INFO(honest.reason);
  CHECK(honest.verdict == v1::VERDICT_PASSED);
  CHECK(honest.worst_error_ratio > 0);
  CHECK(honest.worst_error_ratio < 0.7);
}

TEST_CASE("float32 work done in half precision or TF32 fails unless the task accepts it") {
  size_t k = GENERATE(size_t{24}, size_t{1024}, size_t{16384});
  size_t n = 16;
  std::vector<double> a = Normal(n * k, 4);
  std::vector<double> b = Normal(k * n, 5);
  Task task(DType::kFloat32, {16, 16}, MatMul(a, b, n, k, Same, Same));
  bool known = GENERATE(true, false);
  if (known) {
    task.options.tolerance.reduction = static_cast<int64_t>(k);
  } else {
    task.options.tolerance.largest_input = static_cast<int64_t>(n * k);
  }
  std::vector<double> half = MatMul(a, b, n, k, Half, Same);
  std::vector<double> tf32 = MatMul(a, b, n, k, Tf32, Same);
  CHECK(task.Judge(half).verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(task.Judge(tf32).verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(task.Judge(MatMul(a, b, n, k, Same, Half)).verdict == v1::VERDICT_WRONG_OUTPUT);
  task.options.tolerance.reduced_precision = true;
  CHECK(task.Judge(tf32).verdict == v1::VERDICT_PASSED);
}

TEST_CASE("float32 values passed through half precision fail elementwise") {
  std::vector<double> x = Normal(4096, 6);
  std::vector<double> y(x.size());
  std::vector<double> cheap(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = std::tanh(x[i]);
    cheap[i] = std::tanh(Half(x[i]));
  }
  Task task(DType::kFloat32, {64, 64}, y);
  CHECK(task.Judge(y).verdict == v1::VERDICT_PASSED);
  CHECK(task.Judge(cheap).verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("half and bfloat16 tasks accept float32 accumulation and a rounding in between") {
  DType dtype = GENERATE(DType::kFloat16, DType::kBFloat16);
  auto round = [dtype](double x) { return RoundTo(dtype, x); };
  std::vector<double> x = Normal(2048, 7);
  std::vector<double> exact(x.size());
  std::vector<double> rounded_between(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = round(x[i]);
    exact[i] = std::exp(x[i]) * 3 + 1;
    rounded_between[i] = round(round(std::exp(x[i])) * 3) + 1;
  }
  Task task(dtype, {32, 64}, exact);
  CHECK(task.Judge(exact).verdict == v1::VERDICT_PASSED);
  CHECK(task.Judge(rounded_between).verdict == v1::VERDICT_PASSED);
  for (double& value : exact) value *= 1.05;
  CHECK(task.Judge(exact).verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("the baseline's own error widens the bound, and only where it is") {
  std::vector<double> exact = Normal(1024, 8);
  std::vector<double> eager = exact;
  for (size_t i = 512; i < 516; ++i) eager[i] += 1e-2;
  Task task(DType::kFloat32, {32, 32}, exact);
  task.expected = TensorOf(DType::kFloat32, {32, 32}, eager);
  std::vector<double> near = exact;
  near[530] -= 2e-2;
  CHECK(task.Judge(near).verdict == v1::VERDICT_PASSED);
  std::vector<double> elsewhere = exact;
  elsewhere[3] += 2e-2;
  CHECK(task.Judge(elsewhere).verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("a small row beside a large one is not free") {
  std::vector<double> rows = Normal(2 * 256, 9);
  for (size_t i = 0; i < 256; ++i) rows[i] *= 1e6;
  Task task(DType::kFloat32, {2, 256}, rows);
  std::vector<double> zeroed = rows;
  std::fill(zeroed.begin() + 256, zeroed.end(), 0);
  Comparison result = task.Judge(zeroed);
  CHECK(result.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(result.mismatch->pattern() == "tail from index 256, zero");
}

TEST_CASE("an error in one direction that hides below each element's bound fails by its norm") {
  std::vector<double> exact = Normal(65536, 10);
  Task task(DType::kFloat32, {64, 1024}, exact);
  task.expected = TensorOf(DType::kFloat32, {64, 1024}, exact);
  task.options.tolerance.reduction = 256;
  ToleranceField field(task.expected.tensor, &task.expected64.tensor, task.options.tolerance);
  std::vector<double> biased = exact;
  for (size_t i = 0; i < biased.size(); ++i) biased[i] += 0.9 * field.At(i);
  Comparison result = task.Judge(TensorOf(DType::kFloat32, {64, 1024}, biased));
  CHECK(result.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(result.reason.find("norm") != std::string::npos);
}

TEST_CASE("non-finite values have to be where the reference has them") {
  Task task(DType::kFloat32, {4}, {1, kNaN, kInfinity, -kInfinity});
  CHECK(task.Judge({1, kNaN, kInfinity, -kInfinity}).verdict == v1::VERDICT_PASSED);
  std::vector<std::vector<double>> wrong = {
      {kNaN, kNaN, kInfinity, -kInfinity}, {1, 1, kInfinity, -kInfinity},
      {1, kNaN, -kInfinity, -kInfinity},   {1, kNaN, kNaN, -kInfinity},
      {1, kNaN, 3e38, -kInfinity},         {kInfinity, kNaN, kInfinity, -kInfinity}};
  for (const auto& numbers : wrong) {
    CHECK(task.Judge(numbers).verdict == v1::VERDICT_WRONG_OUTPUT);
  }
}

TEST_CASE("an overflow of the task's dtype counts as infinity, not as a number") {
  Task task(DType::kFloat16, {2}, {1, 1e6});
  CHECK(task.Judge({1, kInfinity}).verdict == v1::VERDICT_PASSED);
  CHECK(task.Judge({1, 65504}).verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("what nobody wrote is named") {
  std::vector<double> exact = Normal(1000, 11);
  Task task(DType::kFloat32, {1000}, exact);
  task.options.poison = 0xFF;
  Value got = TensorOf(DType::kFloat32, {1000}, exact);
  auto poisoned = std::make_shared<std::string>(got.tensor.bytes());
  SECTION("all of it") {
    std::fill(poisoned->begin(), poisoned->end(), '\xFF');
    got.tensor.block = poisoned;
    CHECK(task.Judge(got).mismatch->pattern() == "all poison (never written)");
  }
  SECTION("the tail") {
    std::fill(poisoned->begin() + 4 * 992, poisoned->end(), '\xFF');
    got.tensor.block = poisoned;
    Comparison result = task.Judge(got);
    CHECK(result.mismatch->pattern() == "tail from index 992, never written");
    CHECK(result.mismatch->wrong_elements() == 8);
    CHECK(result.mismatch->index(0) == 992);
  }
  SECTION("a poison that is not NaN") {
    task.options.poison = 0x5A;
    std::fill(poisoned->begin(), poisoned->end(), '\x5A');
    got.tensor.block = poisoned;
    CHECK(task.Judge(got).mismatch->pattern() == "all poison (never written)");
  }
}

TEST_CASE("a single wrong element in a large tensor is found, with its place") {
  std::vector<double> exact = Normal(24 * 24 * 24, 12);
  Task task(DType::kFloat32, {24, 24, 24}, exact);
  std::vector<double> numbers = exact;
  numbers[(5 * 24 + 6) * 24 + 7] += 1e-3;
  Comparison result = task.Judge(numbers);
  REQUIRE(result.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(result.mismatch->wrong_elements() == 1);
  REQUIRE(result.mismatch->index_size() == 3);
  CHECK(result.mismatch->index(0) == 5);
  CHECK(result.mismatch->index(1) == 6);
  CHECK(result.mismatch->index(2) == 7);
  CHECK(result.worst_error_ratio > 1);
}

TEST_CASE("integers, indexes and truth values are equal or wrong") {
  DType dtype = GENERATE(DType::kInt64, DType::kInt32, DType::kUInt8);
  Value expected = TensorOf(dtype, {3}, {1, 2, 3});
  Value tie = TensorOf(dtype, {3}, {1, 2, 4});
  CHECK(CompareOutputs(expected, nullptr, expected, {}).verdict == v1::VERDICT_PASSED);
  CHECK(CompareOutputs(expected, nullptr, tie, {}).verdict == v1::VERDICT_WRONG_OUTPUT);
  // argmax over values that only float64 can tell apart
  CHECK(CompareOutputs(expected, &tie, tie, {}).verdict == v1::VERDICT_PASSED);
}

TEST_CASE("structure, shape, dtype and place come before values") {
  Value expected = TensorOf(DType::kFloat32, {2, 2}, {1, 2, 3, 4}, "cuda:0");
  auto verdict = [&](const Value& got) {
    return CompareOutputs(expected, nullptr, got, {}).verdict;
  };
  CHECK(verdict(TensorOf(DType::kFloat32, {2, 2}, {1, 2, 3, 4}, "cuda:1")) == v1::VERDICT_PASSED);
  CHECK(verdict(TensorOf(DType::kFloat32, {4}, {1, 2, 3, 4})) == v1::VERDICT_WRONG_SHAPE);
  CHECK(verdict(TensorOf(DType::kFloat32, {}, {1})) == v1::VERDICT_WRONG_SHAPE);
  CHECK(verdict(TensorOf(DType::kFloat64, {2, 2}, {1, 2, 3, 4})) == v1::VERDICT_WRONG_DTYPE);
  CHECK(verdict(TensorOf(DType::kFloat32, {2, 2}, {1, 2, 3, 4}, "cpu")) ==
        v1::VERDICT_WRONG_LAYOUT);
  CHECK(verdict(TupleOf({expected})) == v1::VERDICT_WRONG_SHAPE);
  CHECK(verdict(Value()) == v1::VERDICT_WRONG_SHAPE);
  CHECK(CompareOutputs(TupleOf({expected, expected}), nullptr, TupleOf({expected}), {}).verdict ==
        v1::VERDICT_WRONG_SHAPE);
}

TEST_CASE("a second output is compared too") {
  Value right = TensorOf(DType::kFloat32, {2}, {1, 2});
  Value wrong = TensorOf(DType::kFloat32, {2}, {1, 3});
  Comparison result = CompareOutputs(TupleOf({right, right}), nullptr, TupleOf({right, wrong}), {});
  CHECK(result.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(result.mismatch->output() == 1);
}

TEST_CASE("a loss that is near zero by chance is judged by the size of other seeds") {
  // Mean of a million signed numbers: 3e-6 here, 1e-3 for most seeds.
  Task task(DType::kFloat32, {}, {3e-6});
  task.options.tolerance.reduction = 1'000'000;
  CHECK(task.Judge({3e-6 + 2e-9}).verdict == v1::VERDICT_WRONG_OUTPUT);
  task.options.scale_hints = {1e-3};
  CHECK(task.Judge({3e-6 + 2e-9}).verdict == v1::VERDICT_PASSED);
  CHECK(task.Judge({0}).verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("without a float64 reference the bound doubles and stays") {
  std::vector<double> exact = Normal(512, 13);
  Value expected = TensorOf(DType::kFloat32, {512}, exact);
  std::vector<double> off = exact;
  for (double& value : off) value *= 1 + 5e-4;
  CHECK(CompareOutputs(expected, nullptr, expected, {}).verdict == v1::VERDICT_PASSED);
  CHECK(CompareOutputs(expected, nullptr, TensorOf(DType::kFloat32, {512}, off), {}).verdict ==
        v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("whether zeros would pass is told beside the verdict") {
  // Also over several blocks, and when a number that is not finite is among them.
  std::vector<double> values = Normal(8192, 20);
  Task task(DType::kFloat32, {8, 1024}, values);
  CHECK_FALSE(task.Judge(values).zeros_pass);
  Task nothing(DType::kFloat32, {8, 1024}, Filled(8192, 0));
  CHECK(nothing.Judge(Filled(8192, 0)).zeros_pass);
  std::vector<double> one = Filled(8192, 0);
  one[5000] = 1;
  Task single(DType::kFloat32, {8, 1024}, one);
  CHECK_FALSE(single.Judge(one).zeros_pass);
  std::vector<double> infinite = Filled(8192, 0);
  infinite[3] = kInfinity;
  Task overflow(DType::kFloat32, {8, 1024}, infinite);
  Comparison judged = overflow.Judge(infinite);
  CHECK(judged.verdict == v1::VERDICT_PASSED);
  CHECK_FALSE(judged.zeros_pass);
}

TEST_CASE("an empty output passes only as an empty output") {
  Value empty = TensorOf(DType::kFloat32, {0, 4}, {});
  CHECK(CompareOutputs(empty, &empty, empty, {}).verdict == v1::VERDICT_PASSED);
}

TEST_CASE("a change of an input is found by its bytes") {
  Value a = TensorOf(DType::kFloat32, {2}, {0, kNaN});
  Value b = TensorOf(DType::kFloat32, {2}, {-0.0, kNaN});
  CHECK_FALSE(FirstDifference(TupleOf({a, a}), TupleOf({a, a})).has_value());
  auto difference = FirstDifference(TupleOf({a, a}), TupleOf({a, b}));
  REQUIRE(difference.has_value());
  CHECK(difference->leaf == 1);
  CHECK(difference->path == "[1]");
}

TEST_CASE("how far the baseline is from float64 is learned where both are known") {
  std::vector<double> exact = Normal(4096, 11);
  std::vector<double> rounded = exact;
  std::vector<double> noise = Normal(4096, 12);
  // A baseline whose products are rounded to TF32.
  for (size_t i = 0; i < exact.size(); ++i) rounded[i] += 0x1p-11 * noise[i];
  Value expected = TensorOf(DType::kFloat32, {64, 64}, rounded);
  Value expected64 = TensorOf(DType::kFloat64, {64, 64}, exact);
  Value precise = TensorOf(DType::kFloat32, {64, 64}, exact);
  CompareOptions options;
  Comparison known = CompareOutputs(expected, &expected64, precise, options);
  REQUIRE(known.verdict == v1::VERDICT_PASSED);
  REQUIRE(known.baseline_errors.size() == 1);
  CHECK(known.baseline_errors[0] == Approx(0x1p-11).epsilon(0.1));
  // Another case, without float64: who is more precise than the baseline is not wrong.
  CHECK(CompareOutputs(expected, nullptr, precise, options).verdict == v1::VERDICT_WRONG_OUTPUT);
  options.baseline_errors = known.baseline_errors;
  CHECK(CompareOutputs(expected, nullptr, precise, options).verdict == v1::VERDICT_PASSED);
  Value off = TensorOf(DType::kFloat32, {64, 64}, [&] {
    std::vector<double> numbers = exact;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += 0x1p-7 * noise[i];
    return numbers;
  }());
  CHECK(CompareOutputs(expected, nullptr, off, options).verdict == v1::VERDICT_WRONG_OUTPUT);
}

}  // namespace
}  // namespace kmosaic
