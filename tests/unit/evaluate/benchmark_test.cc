#include "gpu_worker/evaluate/benchmark.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/unit/compile/temp_dir.h"
#include "tests/unit/evaluate/fake_gpu.h"
#include "tests/unit/evaluate/fake_roles.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using nlohmann::json;
using testing::CandidateAnswer;
using testing::CandidateProcess;
using testing::FakeGpu;
using testing::FakeRoles;
using testing::FakeTimes;
using testing::Right;
using testing::Square;
using testing::TempDir;

FakeTimes Taking(double us) { return {us, us + 5, us + 10, us + 300, {}}; }

// A little noise, the same in every run.
double Jitter(int call) { return 1 + 0.001 * (call * 7 % 11 - 5); }

struct Fixture {
  FakeRoles roles;
  FakeClock clock;
  ReferenceCache references{1 << 20};
  BaselineCache baselines{1 << 20};
  Cancellation cancellation;
  HostExaminer examiner;
  TempDir dir;
  FakeGpu gpu{dir.path() + "/gpu.lock"};
  DeviceUse device{&gpu, [] { return false; }};
  v1::EvaluationReport report;
  Benchmark::Options options;
  v1::Oracle oracle;
  std::mt19937_64 random{7};

  Fixture() {
    roles.reference = Square;
    roles.candidate = Right;
    roles.clock = &clock;
    roles.reference_time = [](int call) { return Taking(100 * Jitter(call)); };
    roles.candidate_time = [](int call) { return Taking(50 * Jitter(call)); };
    oracle.set_reference("class Model: ...");
    options.oracle = oracle;
    options.candidate.solution.set_contract(v1::CONTRACT_MODELNEW);
    options.candidate.device = "cuda";
    options.device.set_name("NVIDIA H200");
    options.device.set_uuid("GPU-1");
    options.clock = &clock;
    options.baselines = &baselines;
    options.random = [this] { return random(); };
  }

  Conclusion Run() {
    report.Clear();
    Reference::Options reference_options;
    reference_options.oracle = oracle;
    reference_options.device = "cuda";
    Reference reference(reference_options, &roles, &references, &cancellation);
    Benchmark benchmark(options, &reference, &examiner, &roles, &device, &cancellation);
    Conclusion conclusion = benchmark.Prepare();
    if (conclusion.passed()) conclusion = benchmark.Measure();
    if (conclusion.passed()) conclusion = benchmark.Judge(&report);
    return conclusion;
  }
  std::string Notes() const {
    std::string notes;
    for (const std::string& note : report.benchmark().notes()) notes += note + "\n";
    return notes;
  }
};

TEST_CASE("an honest solution gets its times against the baseline") {
  Fixture f;
  Conclusion conclusion = f.Run();
  INFO(conclusion.reason);
  REQUIRE(conclusion.passed());
  const v1::BenchmarkReport& report = f.report.benchmark();
  CHECK(report.median_us() == Approx(50).epsilon(0.01));
  CHECK(report.eager_us() == Approx(100).epsilon(0.01));
  CHECK(report.speedup() == Approx(2).epsilon(0.02));
  CHECK(report.samples() >= 30);
  CHECK(static_cast<uint32_t>(report.samples_us_size()) == report.samples());
  CHECK(report.ci_low_us() <= report.median_us());
  CHECK(report.median_us() <= report.ci_high_us());
  CHECK(report.eager_drift() == Approx(1).epsilon(0.01));
  CHECK(report.launch_us() == 4);
  CHECK(report.tf32_cudnn());
  CHECK_FALSE(report.tf32());
  CHECK_FALSE(report.has_compile_us());
  CHECK(report.checked_calls() >= 1);
  // 1 KiB in and out.
  CHECK(report.has_floor_us());
  CHECK(report.floor_bound() == "memory");
  CHECK_FALSE(report.eager_cached());
}

TEST_CASE("every call has a key of its own") {
  Fixture f;
  REQUIRE(f.Run().passed());
  std::set<uint64_t> keys(f.roles.keys.begin(), f.roles.keys.end());
  CHECK(keys.size() == f.roles.keys.size());
  CHECK(f.roles.keys.size() > 30);
}

TEST_CASE("a baseline is measured once per reference and GPU") {
  Fixture f;
  REQUIRE(f.Run().passed());
  CHECK(f.roles.timed_references == 1);
  REQUIRE(f.Run().passed());
  CHECK(f.roles.timed_references == 1);
  CHECK(f.report.benchmark().eager_cached());
  CHECK_FALSE(f.report.benchmark().has_eager_drift());
  CHECK(f.report.benchmark().speedup() == Approx(2).epsilon(0.02));
  SECTION("another GPU") { f.options.device.set_uuid("GPU-2"); }
  SECTION("another driver") { f.options.device.set_driver("600"); }
  SECTION("another reference") { f.oracle.set_reference("class Model: pass"); }
  REQUIRE(f.Run().passed());
  CHECK(f.roles.timed_references == 2);
}

TEST_CASE("times that are smaller than what the daemon waits for are impossible") {
  Fixture f;
  f.roles.candidate_time = [](int) { return FakeTimes{1, 6, 11, 20'000, {}}; };
  Conclusion conclusion = f.Run();
  CHECK(conclusion.verdict == v1::VERDICT_IMPOSSIBLE_TIME);
  CHECK_FALSE(f.report.has_benchmark());
  SECTION("with a known baseline too") {
    CHECK(f.Run().verdict == v1::VERDICT_IMPOSSIBLE_TIME);
    CHECK(f.roles.timed_references == 1);
  }
}

TEST_CASE("more time than passed is impossible") {
  Fixture f;
  f.roles.candidate_time = [](int) { return FakeTimes{1000, 1005, 1010, 300, {}}; };
  CHECK(f.Run().verdict == v1::VERDICT_IMPOSSIBLE_TIME);
}

TEST_CASE("an answer without times is tampering") {
  Fixture f;
  json reply = GENERATE(json{{"ok", true}}, json{{"ok", true}, {"event_us", "1"}},
                        json{{"ok", true}, {"event_us", -1}, {"joined_us", 1}, {"host_us", 1}},
                        json{{"ok", true}, {"event_us", 1}, {"joined_us", nullptr}});
  f.roles.candidate_time = [reply](int call) {
    FakeTimes times = Taking(50);
    if (call == 20) times.reply = reply;
    return times;
  };
  CHECK(f.Run().verdict == v1::VERDICT_TAMPERING);
}

TEST_CASE("outputs of another call are wrong, whichever call is looked at") {
  Fixture f;
  f.random.seed(GENERATE(1, 2, 3, 4, 5));
  std::vector<float> kept;
  f.roles.candidate = [&kept](const CandidateProcess& p) {
    if (p.timed_calls == 0) return Right(p);
    if (kept.empty()) kept = Square(p.inputs);
    return CandidateAnswer{kept};
  };
  Conclusion conclusion = f.Run();
  CHECK(conclusion.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(conclusion.reason.find("timed") != std::string::npos);
  CHECK(f.report.verify().has_mismatch());
}

TEST_CASE("the calls that are looked at are of the faster half") {
  Fixture f;
  f.random.seed(GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  // Every other call leaves the work out.
  f.roles.candidate_time = [](int call) { return Taking((call % 2 == 0 ? 40 : 50) + 0.01 * call); };
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.timed_calls > 0 && p.timed_calls % 2 == 0)
      answer.outputs.assign(answer.outputs.size(), 0);
    return answer;
  };
  CHECK(f.Run().verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("work that is left out late is found too") {
  Fixture f;
  f.random.seed(GENERATE(1, 2, 3, 4, 5, 6, 7, 8));
  f.options.stop.min_samples = 100;
  f.roles.candidate_time = [](int call) { return Taking((call > 20 ? 40 : 50) + 0.001 * call); };
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.timed_calls > 20) answer.outputs.assign(answer.outputs.size(), 0);
    return answer;
  };
  CHECK(f.Run().verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("the unchanged inputs' result is wrong") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    for (float& y : answer.outputs) {
      if (y == 10.0F) y = 1.0F;  // what the key put there was never seen
    }
    return answer;
  };
  CHECK(f.Run().verdict == v1::VERDICT_WRONG_OUTPUT);
}

TEST_CASE("work on other streams counts, with a note") {
  Fixture f;
  f.roles.candidate_time = [](int) { return FakeTimes{2, 205, 211, 505, {}}; };
  REQUIRE(f.Run().passed());
  CHECK(f.report.benchmark().median_us() == Approx(200));
  CHECK(f.Notes().find("beside the current stream") != std::string::npos);
}

TEST_CASE("noise that does not go away gives no time") {
  Fixture f;
  f.roles.candidate_time = [](int call) { return Taking(call % 2 == 0 ? 50 : 400); };
  CHECK(f.Run().verdict == v1::VERDICT_UNRELIABLE_TIMING);
}

TEST_CASE("noise that goes away is measured again") {
  Fixture f;
  f.roles.candidate_time = [](int call) {
    return Taking(call < 450 && call % 2 == 0 ? 400 : 50 * Jitter(call));
  };
  REQUIRE(f.Run().passed());
  CHECK(f.report.benchmark().median_us() == Approx(50).epsilon(0.02));
}

TEST_CASE("a slow solution is called few times") {
  Fixture f;
  f.roles.candidate_time = [](int) { return Taking(2e6); };
  REQUIRE(f.Run().passed());
  CHECK(f.report.benchmark().samples() == 3);
  CHECK(f.report.benchmark().speedup() < 0.001);
}

TEST_CASE("a launch-bound task is labelled") {
  Fixture f;
  f.roles.reference_time = [](int call) { return Taking(9 * Jitter(call)); };
  f.roles.candidate_time = [](int call) { return Taking(5 * Jitter(call)); };
  REQUIRE(f.Run().passed());
  CHECK(f.Notes().find("bound by launching") != std::string::npos);
}

TEST_CASE("a baseline that drifts is noted") {
  Fixture f;
  f.roles.reference_time = [](int call) { return Taking((call < 600 ? 100 : 120) * Jitter(call)); };
  REQUIRE(f.Run().passed());
  CHECK(f.Notes().find("changed by a factor of 1.20") != std::string::npos);
}

TEST_CASE("a GPU that nobody knows has no floor") {
  Fixture f;
  f.options.device.set_name("Some GPU");
  REQUIRE(f.Run().passed());
  CHECK_FALSE(f.report.benchmark().has_floor_us());
  CHECK(f.report.benchmark().floor_bound().empty());
}

TEST_CASE("a floor above what the reference takes is none") {
  Fixture f;
  f.roles.multiply_adds = uint64_t{1} << 50;  // seconds
  REQUIRE(f.Run().passed());
  CHECK(f.report.benchmark().floor_us() < 1);
  CHECK(f.report.benchmark().floor_bound() == "memory");
}

TEST_CASE("the compiled baseline is measured where it is asked for") {
  Fixture f;
  f.options.compile_baseline = true;
  REQUIRE(f.Run().passed());
  CHECK(f.report.benchmark().compile_us() == Approx(100).epsilon(0.01));
  CHECK(f.roles.timed_references == 2);
  REQUIRE(f.Run().passed());
  CHECK(f.report.benchmark().has_compile_us());
  CHECK(f.roles.timed_references == 2);
}

TEST_CASE("a reference that cannot be timed is not the solution's fault") {
  Fixture f;
  f.roles.reference_refusals["time_begin"] = {
      {"ok", false}, {"verdict", "DEVICE_MEMORY"}, {"error", "CUDA out of memory"}};
  CHECK(f.Run().verdict == v1::VERDICT_UNSUPPORTED);
}

TEST_CASE("a solution that fails while it is timed has its own verdict") {
  Fixture f;
  f.roles.candidate_time = [](int call) {
    FakeTimes times = Taking(50);
    if (call == 12) {
      times.reply = {{"ok", false}, {"verdict", "ILLEGAL_ACCESS"}, {"error", "illegal"}};
    }
    return times;
  };
  CHECK(f.Run().verdict == v1::VERDICT_ILLEGAL_ACCESS);
}

}  // namespace
}  // namespace kmosaic
