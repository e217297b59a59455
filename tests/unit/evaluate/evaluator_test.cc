// The evaluator's stages over a stand-in for a GPU: fake processes, a fake compiler.
#include "gpu_worker/evaluate/evaluator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "gpu_worker/compile/artifact_cache.h"
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
using testing::TempDir;

// Compiles nothing into an empty library.
class FakeRunner : public CommandRunner {
 public:
  absl::StatusOr<CommandResult> Run(const CommandRequest& request) override {
    testing::Write(request.directory + "/out.so", "library");
    return CommandResult();
  }
};

struct Fixture {
  TempDir dir;
  FakeClock clock;
  SystemClock system_clock;
  FakeRunner runner;
  FakeRoles roles;
  HostExaminer examiner;
  FakeGpu gpu{dir.path() + "/gpu.lock"};
  ReferenceCache references{1 << 20};
  BaselineCache baselines{1 << 20};
  std::unique_ptr<ArtifactCache> cache;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Evaluator> evaluator;
  std::mt19937_64 random{1};

  Fixture() {
    roles.reference = [](const std::vector<float>& x) { return x; };
    roles.candidate = [](const CandidateProcess& p) { return CandidateAnswer{p.inputs}; };
    roles.clock = &clock;
    roles.collect_reply = {{"ok", true},
                           {"extensions",
                            {{{"key", std::string(64, 'a')},
                              {"name", "x"},
                              {"cpp_sources", {"a"}},
                              {"cuda_sources", {"b"}},
                              {"functions", {"f"}},
                              {"cflags", json::array()},
                              {"cuda_cflags", json::array()},
                              {"ldflags", json::array()}}}}};
    cache =
        *ArtifactCache::Open({dir.path() + "/cache", 1 << 30, absl::ZeroDuration(), &system_clock});
    Compiler::Options compile;
    compile.cache = cache.get();
    compile.runner = &runner;
    compile.clock = &system_clock;
    compiler = std::make_unique<Compiler>(compile);
    Evaluator::Options options;
    options.device = &gpu;
    options.compiler = compiler.get();
    options.roles = &roles;
    options.examiner = &examiner;
    options.references = &references;
    options.baselines = &baselines;
    options.clock = &clock;
    options.random = [this] { return random(); };
    evaluator = std::make_unique<Evaluator>(options);
  }

  v1::EvaluationReport Evaluate(v1::Role last, double scale = 0) {
    v1::KernelRequest request;
    request.mutable_options()->set_scale(scale);
    request.mutable_oracle()->set_reference("class Model: ...");
    request.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
    request.mutable_solution()->set_source("class ModelNew: ...");
    Cancellation cancellation;
    auto report = evaluator->Evaluate(request, last, &cancellation);
    REQUIRE(report.ok());
    INFO(report->reason());
    return *std::move(report);
  }
  int Exclusive() const {
    return static_cast<int>(
        std::count(gpu.modes.begin(), gpu.modes.end(), DeviceLock::Mode::kExclusive));
  }
};

CandidateAnswer OutOfMemory() {
  CandidateAnswer answer;
  answer.refusal = {{"ok", false}, {"verdict", "DEVICE_MEMORY"}, {"error", "CUDA out of memory"}};
  return answer;
}

TEST_CASE("where reduced shapes tell nothing apart, larger ones are taken, or no solution blamed") {
  Fixture f;
  double zero_below = 0;
  f.roles.reference = [&](const std::vector<float>& x) {
    return f.roles.scale < zero_below ? std::vector<float>(x.size(), 0.0F) : x;
  };
  f.roles.candidate = [&](const CandidateProcess& p) {
    return CandidateAnswer{f.roles.reference(p.inputs)};
  };
  SECTION("larger shapes do") {
    zero_below = 0.1;
    v1::EvaluationReport report = f.Evaluate(v1::ROLE_VERIFY, 0.05);
    CHECK(report.verdict() == v1::VERDICT_PASSED);
    CHECK(report.verify().scale() == Approx(0.2));
    REQUIRE(report.verify().notes_size() >= 1);
    CHECK(report.verify().notes(0).find("larger shapes were taken") != std::string::npos);
  }
  SECTION("only the full shapes do") {
    zero_below = 1;
    v1::EvaluationReport report = f.Evaluate(v1::ROLE_VERIFY, 0.05);
    CHECK(report.verdict() == v1::VERDICT_UNSUPPORTED);
    CHECK(report.verify().scale() == Approx(0.05));
  }
  SECTION("none do") {
    zero_below = 2;
    v1::EvaluationReport report = f.Evaluate(v1::ROLE_VERIFY, 0.05);
    CHECK(report.verdict() == v1::VERDICT_INVALID_TASK);
    CHECK(report.reason().find("full shapes too") != std::string::npos);
    CHECK(f.Evaluate(v1::ROLE_VERIFY, 1).verdict() == v1::VERDICT_INVALID_TASK);
  }
}

TEST_CASE("a solution is verified beside others and timed alone") {
  Fixture f;
  v1::EvaluationReport report = f.Evaluate(v1::ROLE_BENCHMARK);
  INFO(report.reason());
  REQUIRE(report.verdict() == v1::VERDICT_PASSED);
  CHECK(report.verify().secret_seeds() == 5);
  CHECK(report.benchmark().median_us() == Approx(100));
  CHECK(report.benchmark().speedup() == Approx(1));
  // The baseline, then the solution and the baseline again.
  CHECK(f.Exclusive() == 2);
}

TEST_CASE("a solution whose outputs are right without its kernels has none") {
  Fixture f;
  f.roles.needs_kernels = false;
  CHECK(f.Evaluate(v1::ROLE_VERIFY).verdict() == v1::VERDICT_NO_CUSTOM_KERNEL);
}

TEST_CASE("a solution whose launches are not known is not judged by them") {
  Fixture f;
  f.roles.needs_kernels = false;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer{p.inputs};
    answer.launches.reset();
    return answer;
  };
  v1::EvaluationReport report = f.Evaluate(v1::ROLE_VERIFY);
  REQUIRE(report.verdict() == v1::VERDICT_PASSED);
  CHECK(report.verify().notes(0).find("by their names") != std::string::npos);
}

TEST_CASE("what was verified is not verified again to be timed") {
  Fixture f;
  REQUIRE(f.Evaluate(v1::ROLE_VERIFY).verdict() == v1::VERDICT_PASSED);
  int candidates = f.roles.candidates;
  v1::EvaluationReport report = f.Evaluate(v1::ROLE_BENCHMARK);
  REQUIRE(report.verdict() == v1::VERDICT_PASSED);
  CHECK(report.verify().secret_seeds() == 5);
  CHECK(report.has_benchmark());
  CHECK(f.roles.candidates == candidates + 1);
  // Asked to verify, it does.
  f.Evaluate(v1::ROLE_VERIFY);
  CHECK(f.roles.candidates > candidates + 2);
}

TEST_CASE("a solution that failed is not remembered as verified") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    return CandidateAnswer{std::vector<float>(p.inputs.size(), 0.0F)};
  };
  REQUIRE(f.Evaluate(v1::ROLE_VERIFY).verdict() == v1::VERDICT_WRONG_OUTPUT);
  v1::EvaluationReport report = f.Evaluate(v1::ROLE_BENCHMARK);
  CHECK(report.verdict() == v1::VERDICT_WRONG_OUTPUT);
  CHECK_FALSE(report.has_benchmark());
}

TEST_CASE("memory that runs out beside others says nothing") {
  Fixture f;
  f.roles.candidate = [&f](const CandidateProcess& p) {
    return f.Exclusive() == 0 ? OutOfMemory() : CandidateAnswer{p.inputs};
  };
  v1::EvaluationReport report = f.Evaluate(v1::ROLE_VERIFY);
  INFO(report.reason());
  REQUIRE(report.verdict() == v1::VERDICT_PASSED);
  CHECK(f.Exclusive() == 1);
  CHECK(report.verify().notes(0).find("with the GPU alone") != std::string::npos);
  CHECK(report.verify().public_seeds() == 2);
}

TEST_CASE("memory that runs out with the GPU alone is the solution's") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess&) { return OutOfMemory(); };
  CHECK(f.Evaluate(v1::ROLE_VERIFY).verdict() == v1::VERDICT_DEVICE_MEMORY);
  CHECK(f.Exclusive() == 1);
}

TEST_CASE("a reference that does not fit is tried alone and then not supported") {
  Fixture f;
  f.roles.reference_refusals["case"] = {
      {"ok", false}, {"verdict", "DEVICE_MEMORY"}, {"error", "CUDA out of memory"}};
  CHECK(f.Evaluate(v1::ROLE_VERIFY).verdict() == v1::VERDICT_UNSUPPORTED);
  CHECK(f.Exclusive() == 1);
  CHECK(f.roles.references == 2);
}

TEST_CASE("a reference that does not load refuses the task, however often it is asked") {
  Fixture f;
  f.roles.reference_refusals["load"] = {
      {"ok", false}, {"verdict", "INVALID_TASK"}, {"error", "NameError: no"}};
  CHECK(f.Evaluate(v1::ROLE_BENCHMARK).verdict() == v1::VERDICT_INVALID_TASK);
}

TEST_CASE("a lying solution has no times in its report") {
  Fixture f;
  f.roles.candidate_time = [](int) { return testing::FakeTimes{1, 2, 3, 90'000, {}}; };
  v1::EvaluationReport report = f.Evaluate(v1::ROLE_BENCHMARK);
  CHECK(report.verdict() == v1::VERDICT_IMPOSSIBLE_TIME);
  CHECK_FALSE(report.has_benchmark());
}

}  // namespace
}  // namespace kmosaic
