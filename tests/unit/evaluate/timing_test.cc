#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "gpu_worker/evaluate/time_floor.h"
#include "gpu_worker/evaluate/timed_call.h"
#include "gpu_worker/evaluate/timing_bounds.h"
#include "gpu_worker/evaluate/timing_statistics.h"

namespace kmosaic {
namespace {

using nlohmann::json;

std::vector<double> Normal(size_t count, double mean, double deviation, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<double> values(count);
  for (double& value : values) value = normal(generator);
  return values;
}

TEST_CASE("a summary has the order statistics") {
  TimingSummary summary = Summarise({5, 1, 4, 2, 3});
  CHECK(summary.samples == 5);
  CHECK(summary.median == 3);
  CHECK(summary.p10 == Approx(1.4));
  CHECK(summary.p90 == Approx(4.6));
  // Too few for a 95 % interval: the whole range.
  CHECK(summary.ci_low == 1);
  CHECK(summary.ci_high == 5);
  CHECK(Summarise({7}).median == 7);
}

TEST_CASE("the interval of the median has the ranks of the binomial distribution") {
  std::vector<double> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  TimingSummary summary = Summarise(values);
  // Ranks 40 and 61 of 100 (David and Nagaraja, table of quantile intervals: 96 %).
  CHECK(summary.ci_low == 40);
  CHECK(summary.ci_high == 61);
}

TEST_CASE("the interval holds the true median about as often as it says") {
  size_t held = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    TimingSummary summary = Summarise(Normal(40, 50, 10, seed));
    if (summary.ci_low <= 50 && 50 <= summary.ci_high) ++held;
  }
  CHECK(held > 1880);
  CHECK(held < 1990);
}

TEST_CASE("one outlier moves neither the median nor its interval much") {
  std::vector<double> values = Normal(50, 100, 0.5, 3);
  values[20] = 1e6;
  TimingSummary summary = Summarise(values);
  CHECK(summary.median == Approx(100).epsilon(0.01));
  CHECK(summary.relative_error() < 0.01);
}

TEST_CASE("steady calls end at the fewest, noisy ones at the most") {
  StopRule rule;
  auto stops_at = [&rule](double deviation) {
    std::vector<double> values = Normal(rule.max_samples, 100, deviation, 1);
    std::vector<double> so_far;
    for (double value : values) {
      so_far.push_back(value);
      if (rule.Done(so_far, absl::Milliseconds(so_far.size()))) break;
    }
    return so_far.size();
  };
  CHECK(stops_at(0.1) == rule.min_samples);
  CHECK(stops_at(40) == rule.max_samples);
  size_t between = stops_at(3);
  CHECK(between > rule.min_samples);
  CHECK(between < rule.max_samples);
}

TEST_CASE("a slow program is called few times, and never fewer than three") {
  StopRule rule;
  CHECK_FALSE(rule.Done({3e6, 3e6}, absl::Seconds(6)));
  CHECK(rule.Done({3e6, 3e6, 3e6}, absl::Seconds(9)));
  CHECK_FALSE(rule.Done({1e6, 1e6, 1e6}, absl::Seconds(3)));
}

TEST_CASE("long calls that agree need few samples") {
  StopRule rule;
  std::vector<double> calls(10, 60'000);
  calls[3] = 60'100;
  CHECK(rule.Done(calls, absl::Milliseconds(600)));
  // Short ones may still be warming up.
  CHECK_FALSE(rule.Done(calls, absl::Milliseconds(100)));
  CHECK_FALSE(rule.Done(std::vector<double>(9, 60'000), absl::Milliseconds(600)));
  // They do not agree.
  for (size_t i = 0; i < calls.size(); i += 2) calls[i] = 61'000;
  CHECK_FALSE(rule.Done(calls, absl::Milliseconds(600)));
}

TEST_CASE("warm means some calls and some time, but not long waiting") {
  WarmUp warm;
  CHECK_FALSE(warm.Done(0, absl::ZeroDuration(), absl::Seconds(9)));
  CHECK_FALSE(warm.Done(2, absl::Seconds(1), absl::Seconds(1)));
  CHECK_FALSE(warm.Done(100, absl::Milliseconds(10), absl::Milliseconds(200)));
  CHECK(warm.Done(100, absl::Milliseconds(60), absl::Milliseconds(200)));
  CHECK(warm.Done(100, absl::Milliseconds(10), absl::Milliseconds(300)));
  CHECK(warm.Done(1, absl::Seconds(30), absl::Seconds(30)));
  CHECK(warm.Done(3000, absl::Milliseconds(10), absl::Seconds(2)));
}

TEST_CASE("the answer to a timed call is looked into") {
  json good = {{"ok", true}, {"event_us", 10}, {"joined_us", 12.5}, {"host_us", 13}};
  auto call = ParseTimedCall(good, absl::Microseconds(100));
  REQUIRE(call.ok());
  CHECK(call->event == 10);
  CHECK(call->joined == 12.5);
  CHECK(call->outside == 100);
  for (const json& value :
       {json("10"), json(-1.0), json(nullptr), json(std::numeric_limits<double>::infinity())}) {
    json bad = good;
    bad["joined_us"] = value;
    INFO(value);
    CHECK(absl::IsInvalidArgument(ParseTimedCall(bad, absl::Seconds(1)).status()));
  }
}

std::vector<TimedCall> Calls(TimedCall call) { return std::vector<TimedCall>(20, call); }

const TimedCall kBaseline = {100, 105, 110, 400};

TEST_CASE("work beside the current stream counts") {
  CallSurroundings baseline = SurroundingsOf(Calls(kBaseline));
  CHECK(baseline.join == 5);
  CHECK(baseline.host == 5);
  CHECK(baseline.outside == 295);
  CallTimes plain = TimesOf(Calls({50, 56, 61, 350}), baseline);
  CHECK_FALSE(plain.elsewhere);
  CHECK(plain.times_us[0] == 50);
  CallTimes beside = TimesOf(Calls({3, 2005, 2011, 2300}), baseline);
  CHECK(beside.elsewhere);
  CHECK(beside.times_us[0] == 2000);
}

TEST_CASE("times that cannot be are found") {
  CallSurroundings baseline = SurroundingsOf(Calls(kBaseline));
  auto find = [&](const TimedCall& call, std::optional<double> floor = {}) {
    std::vector<TimedCall> calls = Calls(call);
    return FindImpossibleTime(calls, TimesOf(calls, baseline), baseline, floor);
  };
  SECTION("an honest process passes") {
    CHECK(find({80, 86, 91, 390}) == std::nullopt);
    CHECK(find({80, 86, 91, 390}, 60) == std::nullopt);
    // Slower to prepare and to answer, but not by more than it may be.
    CHECK(find({80, 86, 91, 800}) == std::nullopt);
    CHECK(find({20000, 20006, 20011, 20900}) == std::nullopt);
  }
  SECTION("more reported than passed") { CHECK(find({500, 505, 510, 300}).has_value()); }
  SECTION("the daemon waited for more than was reported") {
    auto reason = find({1, 6, 11, 20400});
    REQUIRE(reason.has_value());
    CHECK(reason->find("took 20099.0 us more") != std::string::npos);
  }
  SECTION("events and the host's clock disagree") { CHECK(find({10, 15, 900, 1100}).has_value()); }
  SECTION("faster than memory") {
    CHECK(find({20, 25, 30, 330}, 100).has_value());
    CHECK(find({60, 65, 70, 330}, 100) == std::nullopt);
    // So little that a launch takes longer.
    CHECK(find({0.5, 5.5, 10, 330}, 2) == std::nullopt);
  }
}

TEST_CASE("GPUs are known by the names that the driver gives") {
  CHECK(PeaksOf("NVIDIA H200")->bandwidth == 4.8e12);
  CHECK(PeaksOf("NVIDIA H100 PCIe")->bandwidth < PeaksOf("NVIDIA H100 80GB HBM3")->bandwidth);
  CHECK(PeaksOf("NVIDIA L40S")->tf32 > PeaksOf("NVIDIA L40")->tf32);
  CHECK(PeaksOf("NVIDIA L4")->bandwidth == 3e11);
  CHECK(PeaksOf("NVIDIA A100-SXM4-80GB").has_value());
  CHECK(PeaksOf("GeForce 256") == std::nullopt);
}

TEST_CASE("the floor is the larger of moving and computing") {
  GpuPeaks peaks = *PeaksOf("NVIDIA H200");
  CallWork add;  // two inputs and an output of 1 GB each
  add.input_bytes = 2'000'000'000;
  add.output_bytes = 1'000'000'000;
  TimeFloor floor = FloorOf(add, peaks);
  CHECK(floor.bound == "memory");
  // 2.95 GB: 50 MB of the output can stay in L2.
  CHECK(floor.floor_us == Approx(2.95e9 / 4.8e12 * 1e6));
  CHECK(floor.memory_us == floor.floor_us);

  CallWork matmul;  // 4096 cubed
  matmul.input_bytes = 2 * 4096 * 4096 * 4;
  matmul.output_bytes = 4096 * 4096 * 4;
  matmul.multiply_adds = uint64_t{4096} * 4096 * 4096;
  floor = FloorOf(matmul, peaks);
  CHECK(floor.bound == "arithmetic");
  CHECK(floor.floor_us == Approx(2 * 4096.0 * 4096 * 4096 / 494.7e12 * 1e6));
  CHECK(floor.memory_us < floor.floor_us);
  matmul.dtype = DType::kFloat16;
  CHECK(FloorOf(matmul, peaks).floor_us < floor.floor_us);

  CallWork weights;
  weights.parameter_bytes = 1'000'000'000;
  floor = FloorOf(weights, peaks);
  CHECK(floor.memory_us == 0);
  CHECK(floor.floor_us > 200);
}

}  // namespace
}  // namespace kmosaic
