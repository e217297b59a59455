// The comparison in a launcher process against the one here, which decides what is right.
// Without a GPU the process works on memfds with the same torch operations.
#include "gpu_worker/evaluate/launcher.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "gpu_worker/evaluate/parcel.h"
#include "gpu_worker/sandbox/memfd.h"
#include "tests/unit/evaluate/tensors.h"
#include "tests/unit/sandbox/role_fixture.h"

namespace kmosaic {
namespace {

using nlohmann::json;
using testing::Normal;
using testing::TensorOf;
using testing::TupleOf;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

json NodeOf(const Value& value, std::string* block) {
  if (value.kind == Value::Kind::kTuple) {
    json items = json::array();
    for (const Value& item : value.items) items.push_back(NodeOf(item, block));
    return {{"k", "tuple"}, {"items", items}};
  }
  block->resize((block->size() + 63) / 64 * 64);
  const Tensor& tensor = value.tensor;
  json node = {{"k", "tensor"},   {"dtype", tensor.dtype_name}, {"shape", tensor.shape},
               {"device", "cpu"}, {"offset", block->size()},    {"bytes", tensor.size_bytes}};
  block->append(tensor.bytes());
  return node;
}

Parcel ParcelOf(const Value& value) {
  std::string block;
  Parcel parcel;
  parcel.node = NodeOf(value, &block);
  parcel.block = std::make_shared<const std::string>(std::move(block));
  parcel.value = *ParseValue(parcel.node, parcel.block);
  return parcel;
}

// Null, after a warning, where there is no Python with torch.
LauncherPool* SharedPool() {
  static std::unique_ptr<ZygoteRoles> roles;
  static std::unique_ptr<LauncherPool> pool;
  Zygote* zygote = SharedZygote();
  if (zygote == nullptr) return nullptr;
  if (pool == nullptr) {
    roles = std::make_unique<ZygoteRoles>(zygote);
    pool = std::make_unique<LauncherPool>(roles.get(), RoleLimits(), "emulated", 2);
  }
  return pool.get();
}

struct Case {
  DType dtype;
  std::vector<int64_t> shape;
  // Of `got`, as a multiple of the dtype's unit roundoff, relative to each number.
  double error = 0;
  bool have64 = true;
  // Numbers that replace some of `expected`, `expected64` and `got`.
  std::vector<std::array<double, 3>> special;
  double scale_hint = 0;
};

struct Made {
  Value expected;
  Value expected64;
  Value got;
};

Made Make(const Case& c, uint64_t seed) {
  size_t count = Components(c.dtype);
  for (int64_t size : c.shape) count *= static_cast<size_t>(size);
  std::vector<double> exact = Normal(count, seed);
  std::vector<double> noise = Normal(count, seed + 1);
  std::vector<double> expected = exact;
  std::vector<double> got = exact;
  double unit = std::max(UnitRoundoff(c.dtype), IsFloating(c.dtype) ? 0 : 0.25);
  for (size_t i = 0; i < count; ++i) {
    if (!IsFloating(c.dtype)) {
      exact[i] = expected[i] = std::floor(4 * exact[i]);
      got[i] = exact[i] + (i % 7 == 0 ? std::floor(c.error) : 0);
      continue;
    }
    expected[i] = exact[i] * (1 + unit * 0.5 * noise[i]);
    got[i] = exact[i] * (1 + unit * c.error * noise[i]);
  }
  for (size_t i = 0; i < c.special.size(); ++i) {
    size_t at = (i * 37 + 5) % count;
    expected[at] = c.special[i][0];
    exact[at] = c.special[i][1];
    got[at] = c.special[i][2];
  }
  DType wide = IsComplex(c.dtype)    ? DType::kComplex128
               : IsFloating(c.dtype) ? DType::kFloat64
                                     : c.dtype;
  return {TensorOf(c.dtype, c.shape, expected), TensorOf(wide, c.shape, exact),
          TensorOf(c.dtype, c.shape, got)};
}

TEST_CASE("a launcher concludes what the comparison here does") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  LauncherExaminer examiner(pool, BlockMemory::kHost, kMaxBytes);
  std::vector<Case> cases;
  for (DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kComplex64}) {
    for (double error : {0.0, 2.0, 9.0, 40.0, 3000.0}) {
      for (bool have64 : {true, false}) {
        cases.push_back({dtype, {17, 50}, error, have64, {}, 0});
      }
    }
    // Shapes: one number, rows shorter and longer than a block, a short last block.
    for (std::vector<int64_t> shape :
         std::vector<std::vector<int64_t>>{{}, {1}, {3, 5}, {7, 1500}, {40, 33}, {0, 4}}) {
      cases.push_back({dtype, shape, 2.0, true, {}, 0});
      cases.push_back({dtype, shape, 2.0, true, {}, 50.0});
    }
  }
  for (DType dtype : {DType::kInt64, DType::kInt32, DType::kUInt8, DType::kBool}) {
    for (double error : {0.0, 1.0}) cases.push_back({dtype, {13, 9}, error, true, {}, 0});
  }
  for (const std::array<double, 3>& special :
       std::vector<std::array<double, 3>>{{kNan, kNan, kNan},
                                          {kInfinity, kInfinity, kInfinity},
                                          {-kInfinity, -kInfinity, -kInfinity},
                                          {kInfinity, kInfinity, -kInfinity},
                                          {kInfinity, 1e39, kInfinity},
                                          {kInfinity, 1e39, 1},
                                          {1, 1, kNan},
                                          {1, 1, kInfinity},
                                          {kNan, kNan, 1},
                                          {0, 0, 0},
                                          {1, 1, 2}}) {
    cases.push_back({DType::kFloat32, {17, 50}, 1.0, true, {special, special}, 0});
  }
  // What rounds to infinity, from just above the largest finite number.
  cases.push_back({DType::kFloat16, {17, 50}, 1.0, true, {{kInfinity, 65520, 65504}}, 0});
  cases.push_back({DType::kFloat16, {17, 50}, 1.0, true, {{kInfinity, 65520, kInfinity}}, 0});
  cases.push_back({DType::kFloat16, {17, 50}, 1.0, true, {{65504, 65504, 65504}}, 0});
  int passed = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    Made made = Make(c, 100 + i);
    Parcel expected = ParcelOf(TupleOf({made.expected, made.expected}));
    Parcel expected64 = ParcelOf(TupleOf({made.expected64, made.expected64}));
    Parcel got = ParcelOf(TupleOf({made.got, made.expected}));
    CompareOptions options;
    options.tolerance.largest_input = 100;
    if (c.scale_hint > 0) options.scale_hints = {c.scale_hint, c.scale_hint};
    // On both sides of what it allows.
    if (i % 2 == 0) options.baseline_errors = {3 * UnitRoundoff(c.dtype), 0};
    Comparison here =
        CompareOutputs(expected.value, c.have64 ? &expected64.value : nullptr, got.value, options);
    auto there = examiner.Compare(expected, c.have64 ? &expected64 : nullptr, got, options);
    INFO("case " << i << " " << DTypeName(c.dtype) << " error " << c.error << ": " << here.reason);
    REQUIRE(there.ok());
    CHECK(there->verdict == here.verdict);
    CHECK(there->reason == here.reason);
    CHECK(there->worst_error_ratio == Approx(here.worst_error_ratio));
    if (here.verdict == kernelmosaic::v1::VERDICT_PASSED) {
      REQUIRE(there->baseline_errors.size() == here.baseline_errors.size());
      for (size_t leaf = 0; leaf < here.baseline_errors.size(); ++leaf) {
        CHECK(there->baseline_errors[leaf] == Approx(here.baseline_errors[leaf]));
      }
      CHECK(there->zeros_pass == here.zeros_pass);
      ++passed;
    }
  }
  CHECK(passed > 60);
  CHECK(passed < static_cast<int>(cases.size()) - 20);
}

TEST_CASE("a launcher sees what the wrong part looks like") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  LauncherExaminer examiner(pool, BlockMemory::kHost, kMaxBytes);
  CompareOptions options;
  options.poison = 0x5A;
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64, DType::kComplex64,
                      DType::kInt32, DType::kUInt8}) {
    size_t count = 300 * Components(dtype);
    std::vector<double> numbers = Normal(count, 5);
    for (double& number : numbers) {
      number = IsFloating(dtype) ? RoundTo(dtype, number) : std::floor(std::abs(9 * number)) + 1;
    }
    Parcel expected = ParcelOf(TensorOf(dtype, {30, 10}, numbers));
    for (std::string pattern : {"zeros", "zero tail", "poison", "poison tail", "one", "nans"}) {
      if (pattern == "nans" && !IsFloating(dtype)) continue;
      std::vector<double> values = numbers;
      size_t tail = pattern == "zero tail" ? count / 2 : 0;
      if (pattern == "zeros" || pattern == "zero tail") {
        std::fill(values.begin() + static_cast<std::ptrdiff_t>(tail), values.end(), 0);
      }
      if (pattern == "nans") std::fill(values.begin(), values.end(), kNan);
      if (pattern == "one") values[count / 3] += 1000;
      Value got = TensorOf(dtype, {30, 10}, values);
      if (pattern == "poison" || pattern == "poison tail") {
        std::string bytes(got.tensor.bytes());
        size_t from = pattern == "poison" ? 0 : bytes.size() / 2;
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(), '\x5A');
        got.tensor.block = std::make_shared<const std::string>(bytes);
      }
      Parcel given = ParcelOf(got);
      Comparison here = CompareOutputs(expected.value, nullptr, given.value, options);
      auto there = examiner.Compare(expected, nullptr, given, options);
      INFO(DTypeName(dtype) << " " << pattern << ": " << here.reason);
      REQUIRE(there.ok());
      REQUIRE(here.mismatch.has_value());
      CHECK(there->reason == here.reason);
      REQUIRE(there->mismatch.has_value());
      CHECK(there->mismatch->pattern() == here.mismatch->pattern());
      CHECK(there->mismatch->wrong_elements() == here.mismatch->wrong_elements());
      CHECK(there->mismatch->max_error() == Approx(here.mismatch->max_error()));
    }
  }
}

TEST_CASE("what is right is known to be right without a second look") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  for (const Case& c : std::vector<Case>{
           {DType::kFloat32, {64, 100}, 2.0, true, {}, 0},
           {DType::kFloat16, {64, 100}, 2.0, false, {}, 0},
           {DType::kInt64, {64, 100}, 0.0, true, {}, 0},
           {DType::kFloat32, {64, 100}, 1.0, true, {{-kInfinity, -kInfinity, -kInfinity}}, 0},
           {DType::kFloat32, {64, 100}, 1.0, true, {{kNan, kNan, kNan}}, 0}}) {
    Made made = Make(c, 7);
    Parcel expected = ParcelOf(made.expected);
    Parcel expected64 = ParcelOf(made.expected64);
    Parcel got = ParcelOf(made.got);
    ToleranceRule rule = RuleOf(expected.value.tensor, true, {});
    json rules = {{{"unit", rule.unit},
                   {"accumulation", rule.accumulation},
                   {"block", rule.block},
                   {"scale_hint", 0},
                   {"baseline_error", 0},
                   {"baseline_error", 0},
                   {"factor", rule.factor},
                   {"smallest_block", rule.smallest_block}}};
    std::vector<UniqueFd> held;
    std::vector<int> fds;
    for (const Parcel* parcel : {&expected, &expected64, &got}) {
      held.push_back(*parcel->ToDescriptor("block"));
      fds.push_back(held.back().get());
    }
    auto reply = pool->Call({{"op", "compare"},
                             {"memory", "host"},
                             {"expected", expected.node},
                             {"expected64", expected64.node},
                             {"got", got.node},
                             {"rules", rules},
                             {"poison", 255}},
                            fds);
    REQUIRE(reply.ok());
    INFO(reply->message.dump());
    CHECK(reply->message["leaves"][0]["clean"] == true);
  }
}

TEST_CASE("a launcher sums up outputs as it is done here") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  LauncherExaminer examiner(pool, BlockMemory::kHost, kMaxBytes);
  std::vector<double> numbers = Normal(300, 3);
  for (bool finite : {true, false}) {
    if (!finite) numbers[40] = kInfinity;
    Parcel outputs = ParcelOf(
        TupleOf({TensorOf(DType::kFloat32, {300}, numbers), TensorOf(DType::kInt32, {2}, {3, 4})}));
    OutputSummary here = Summarize(outputs.value);
    auto there = examiner.Summarize(outputs);
    REQUIRE(there.ok());
    CHECK(there->non_finite == !finite);
    REQUIRE(there->mean_squares.size() == 2);
    CHECK(there->mean_squares[0] == Approx(here.mean_squares[0]));
    CHECK(there->mean_squares[1] == 0);
  }
}

TEST_CASE("a launcher sees any changed byte") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  LauncherExaminer examiner(pool, BlockMemory::kHost, kMaxBytes);
  std::vector<double> numbers = Normal(300, 3);
  numbers[7] = kNan;  // equal to itself here
  Parcel before = ParcelOf(TensorOf(DType::kFloat32, {300}, numbers));
  auto same = examiner.FirstDifference(before, ParcelOf(TensorOf(DType::kFloat32, {300}, numbers)));
  REQUIRE(same.ok());
  CHECK_FALSE(same->has_value());
  numbers[299] = -numbers[299];
  auto other =
      examiner.FirstDifference(before, ParcelOf(TensorOf(DType::kFloat32, {300}, numbers)));
  REQUIRE(other.ok());
  REQUIRE(other->has_value());
  CHECK((**other).what == "its content");
}

TEST_CASE("what else a solution writes into its answer goes no further") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  LauncherExaminer examiner(pool, BlockMemory::kHost, kMaxBytes);
  Parcel whole = ParcelOf(TensorOf(DType::kFloat32, {30, 10}, Normal(300, 3)));
  Parcel odd = whole;
  odd.node["stride"] = {"a"};
  odd.node["items"] = 7;
  odd.value = *ParseValue(odd.node, odd.block);
  auto compared = examiner.Compare(whole, nullptr, odd, {});
  REQUIRE(compared.ok());
  CHECK(compared->verdict == kernelmosaic::v1::VERDICT_PASSED);
}

TEST_CASE("a block that is smaller than was said is the solution's doing, and nobody else's") {
  LauncherPool* pool = SharedPool();
  if (pool == nullptr) return;
  LauncherExaminer examiner(pool, BlockMemory::kHost, kMaxBytes);
  Parcel whole = ParcelOf(TensorOf(DType::kFloat32, {300}, Normal(300, 3)));
  Parcel cut = whole;
  cut.block = std::make_shared<const std::string>(whole.block->substr(0, 40));
  CHECK(absl::IsInvalidArgument(examiner.Compare(whole, nullptr, cut, {}).status()));
  CHECK(absl::IsInternal(examiner.Compare(cut, nullptr, whole, {}).status()));
  // The process goes on.
  CHECK(examiner.Compare(whole, nullptr, whole, {}).ok());
}

}  // namespace
}  // namespace kmosaic
