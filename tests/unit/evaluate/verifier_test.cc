#include "gpu_worker/evaluate/verifier.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/evaluate/fake_roles.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;
using nlohmann::json;
using testing::CandidateAnswer;
using testing::CandidateProcess;
using testing::FakeRoles;
using testing::Right;
using testing::Square;

std::vector<float> Poisoned(uint8_t poison) {
  std::vector<float> numbers(FakeRoles::kSize);
  std::memset(numbers.data(), poison, numbers.size() * 4);
  return numbers;
}

RoleFailure Ended(RoleFailure::Kind kind) {
  RoleFailure failure;
  failure.kind = kind;
  failure.signal_number = 11;
  return failure;
}

struct Fixture {
  FakeRoles roles;
  ReferenceCache cache{1 << 20};
  Cancellation cancellation;
  HostExaminer examiner;
  v1::EvaluationReport report;
  bool emulated = true;
  std::optional<uint64_t> weight_seed;
  v1::Oracle oracle;

  Fixture() {
    roles.reference = Square;
    roles.candidate = Right;
    oracle.set_reference("class Model: ...");
  }

  Conclusion Verify() {
    Reference::Options reference_options;
    reference_options.oracle = oracle;
    reference_options.device = "emulated";
    Reference reference(reference_options, &roles, &cache, &cancellation);
    VerifyOptions options;
    options.oracle = oracle;
    options.candidate.solution.set_contract(v1::CONTRACT_MODELNEW);
    options.candidate.device = "emulated";
    options.emulated = emulated;
    options.public_seeds = PublicSeeds(2);
    options.secret_seeds = {901, 902, 903, 904, 905};
    options.secret_weight_seed = weight_seed;
    return Verifier(options, &reference, &examiner, &roles, &cancellation).Verify(&report);
  }
};

TEST_CASE("a right solution passes all checks, and the report says which") {
  Fixture f;
  Conclusion conclusion = f.Verify();
  INFO(conclusion.reason);
  REQUIRE(conclusion.verdict == v1::VERDICT_PASSED);
  const v1::VerifyReport& verify = f.report.verify();
  CHECK(verify.public_seeds() == 2);
  CHECK(verify.secret_seeds() == 5);
  REQUIRE(verify.seeds_size() == 5);
  CHECK(verify.seeds(0) == 901);
  CHECK(verify.checks_size() == 5);
  CHECK(verify.shapes().at("N") == 256);
  CHECK(f.report.work().launches() == 1);
  CHECK(f.report.output() == "printed by the candidate");
  CHECK(f.roles.references == 1);
  CHECK(f.roles.candidates == 2);
}

TEST_CASE("outputs that took no work are wrong") {
  Fixture f;
  SECTION("zeros") {
    f.roles.candidate = [](const CandidateProcess& p) {
      return CandidateAnswer{std::vector<float>(p.inputs.size(), 0.0F)};
    };
    CHECK(f.Verify().verdict == v1::VERDICT_WRONG_OUTPUT);
    CHECK(f.report.verify().mismatch().pattern() == "all zero");
    CHECK(f.report.verify().mismatch().public_seed() == PublicSeeds(1)[0]);
  }
  SECTION("the input itself") {
    f.roles.candidate = [](const CandidateProcess& p) { return CandidateAnswer{p.inputs}; };
    CHECK(f.Verify().verdict == v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("a constant") {
    f.roles.candidate = [](const CandidateProcess& p) {
      return CandidateAnswer{std::vector<float>(p.inputs.size(), 2.0F)};
    };
    CHECK(f.Verify().verdict == v1::VERDICT_WRONG_OUTPUT);
  }
  SECTION("memory that nothing wrote") {
    f.roles.candidate = [](const CandidateProcess& p) {
      return CandidateAnswer{Poisoned(p.poison)};
    };
    CHECK(f.Verify().verdict == v1::VERDICT_WRONG_OUTPUT);
    CHECK(f.report.verify().mismatch().pattern() == "all poison (never written)");
  }
}

TEST_CASE("work skipped after some calls, or kept from an earlier call, is found") {
  Fixture f;
  int honest = GENERATE(1, 2, 3, 4, 6);
  f.roles.candidate = [honest](const CandidateProcess& p) {
    static std::vector<float> kept;
    if (p.calls <= honest) kept = Square(p.inputs);
    return CandidateAnswer{kept};
  };
  v1::Verdict verdict = f.Verify().verdict;
  CHECK((verdict == v1::VERDICT_WRONG_OUTPUT || verdict == v1::VERDICT_NONDETERMINISTIC));
}

TEST_CASE("a second call with the same inputs that adds to what is there is found") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.calls == 3) answer.outputs[7] += 1.0F;
    return answer;
  };
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_NONDETERMINISTIC);
}

TEST_CASE("right for public seeds only is wrong, and the secret seed is not named") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.seed >= 901 && p.seed <= 905) answer.outputs[3] = 0;
    return answer;
  };
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK_FALSE(f.report.verify().mismatch().has_public_seed());
  CHECK(conclusion.reason.find("901") == std::string::npos);
  CHECK(f.report.verify().secret_seeds() == 0);
}

TEST_CASE("one case has other weights, in the second process") {
  Fixture f;
  f.weight_seed = 4711;
  std::vector<uint64_t> seen;
  f.roles.candidate = [&](const CandidateProcess& p) {
    if (p.weight_seed != 0) seen.push_back(p.weight_seed);
    return Right(p);
  };
  CHECK(f.Verify().passed());
  CHECK(seen == std::vector<uint64_t>{4711});
  CHECK(f.roles.candidates == 2);
  CHECK(f.report.verify().weight_seed() == 4711);
  CHECK(f.report.verify().checks(5) == "other weights");
  // A secret case is never kept.
  int cases = f.roles.cases;
  f.report.Clear();
  CHECK(f.Verify().passed());
  CHECK(f.roles.cases == 2 * cases - 2);
}

TEST_CASE("a solution that only knows the usual weights is wrong, and the seed is not named") {
  Fixture f;
  f.emulated = GENERATE(true, false);
  f.weight_seed = 4711;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.weight_seed != 0) answer.outputs[3] = 0;
    return answer;
  };
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(conclusion.reason.find("wrong with others") != std::string::npos);
  CHECK(conclusion.reason.find("4711") == std::string::npos);
  CHECK_FALSE(f.report.verify().mismatch().has_public_seed());
}

TEST_CASE("with other weights too, a race and unwritten memory are told apart") {
  Fixture f;
  f.weight_seed = 4711;
  SECTION("race") {
    f.roles.candidate = [](const CandidateProcess& p) {
      CandidateAnswer answer = Right(p);
      if (p.schedule == "reverse") answer.outputs[3] = 0;
      return answer;
    };
    CHECK(f.Verify().verdict == v1::VERDICT_DATA_RACE);
  }
  SECTION("memory") {
    f.roles.candidate = [](const CandidateProcess& p) {
      CandidateAnswer answer = Right(p);
      if (p.poison != 0xFF) answer.outputs[3] = 0;
      return answer;
    };
    Conclusion conclusion = f.Verify();
    CHECK(conclusion.verdict == v1::VERDICT_WRONG_OUTPUT);
    CHECK(conclusion.reason.find("memory that nothing wrote") != std::string::npos);
  }
}

TEST_CASE("a shortcut that holds for small values only is found by a value family") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    for (float& y : answer.outputs) {
      if (y > 100.0F) y = std::numeric_limits<float>::quiet_NaN();
    }
    return answer;
  };
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(conclusion.reason.find("'large'") != std::string::npos);
  CHECK(f.report.verify().mismatch().family() == "large");
}

TEST_CASE("a family that the reference overflows with is skipped, with a note") {
  Fixture f;
  f.roles.reference = [](const std::vector<float>& x) {
    std::vector<float> y = Square(x);
    for (float& value : y) {
      if (value > 100.0F) value = std::numeric_limits<float>::infinity();
    }
    return y;
  };
  f.roles.candidate = Right;
  CHECK(f.Verify().verdict == v1::VERDICT_PASSED);
  REQUIRE(f.report.verify().notes_size() == 1);
  CHECK(f.report.verify().notes(0) == "values 'large' skipped: the reference overflows with them");
}

TEST_CASE("a changed input is its own verdict, unless the task allows it") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    answer.inputs_after = std::vector<float>(p.inputs.size(), 0.0F);
    return answer;
  };
  SECTION("not allowed") {
    Conclusion conclusion = f.Verify();
    CHECK(conclusion.verdict == v1::VERDICT_MODIFIED_INPUT);
    CHECK(conclusion.reason.find("input[0]") != std::string::npos);
  }
  SECTION("allowed") {
    f.oracle.add_mutable_inputs(0);
    CHECK(f.Verify().verdict == v1::VERDICT_PASSED);
  }
  SECTION("another one is allowed") {
    f.oracle.add_mutable_inputs(1);
    CHECK(f.Verify().verdict == v1::VERDICT_MODIFIED_INPUT);
  }
}

TEST_CASE("a result that depends on the order of threads is a race") {
  Fixture f;
  std::string wrong = GENERATE("forward", "reverse");
  f.roles.candidate = [wrong](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.schedule == wrong) answer.outputs[0] += 1.0F;
    return answer;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_DATA_RACE);
}

TEST_CASE("a result that depends on unwritten memory is wrong, and says so") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    // NaN vanishes in a maximum, a large number does not.
    if (p.poison != 0xFF) answer.outputs[5] = 1.5e16F;
    return answer;
  };
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_WRONG_OUTPUT);
  CHECK(conclusion.reason.find("memory that nothing wrote") != std::string::npos);
}

TEST_CASE("other bits in another order, within tolerance, are a note") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    if (p.schedule == "reverse") {
      for (float& y : answer.outputs) y = std::nextafter(y, 1e30F);
    }
    return answer;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_PASSED);
  CHECK(f.report.verify().notes(0).find("other bits") != std::string::npos);
}

TEST_CASE("on a GPU a difference between processes is nondeterminism") {
  Fixture f;
  f.emulated = false;
  int process = 0;
  f.roles.candidate = [&](const CandidateProcess& p) {
    if (p.calls == 1) ++process;
    CandidateAnswer answer = Right(p);
    if (process == 2) answer.outputs[0] += 1.0F;
    return answer;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_NONDETERMINISTIC);
}

TEST_CASE("right outputs without a kernel of its own are no solution") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    // A fallback that is taken for the third call on.
    answer.launches = p.calls < 3 ? 1 : 0;
    return answer;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_NO_CUSTOM_KERNEL);
}

TEST_CASE("what the device saw decides whatever the outputs are") {
  Fixture f;
  auto [kind, verdict] = GENERATE(table<std::string, v1::Verdict>({
      {"out_of_bounds", v1::VERDICT_OUT_OF_BOUNDS},
      {"misaligned_access", v1::VERDICT_ILLEGAL_ACCESS},
      {"illegal_launch", v1::VERDICT_ILLEGAL_LAUNCH},
      {"deadlock", v1::VERDICT_TIME_LIMIT},
      {"device_assert", v1::VERDICT_RUNTIME_ERROR},
      {"unsupported", v1::VERDICT_UNSUPPORTED},
  }));
  json finding = {{"kind", kind},
                  {"kernel", "k"},
                  {"block", {1, 0, 0}},
                  {"thread", {2, 0, 0}},
                  {"detail", "byte 1024 of 1024"}};
  SECTION("in the answer") {
    f.roles.candidate = [finding](const CandidateProcess& p) {
      CandidateAnswer answer = Right(p);
      answer.findings = json::array({finding});
      return answer;
    };
  }
  SECTION("in the report of a process that crashed") {
    f.roles.candidate = [finding](const CandidateProcess&) {
      CandidateAnswer answer;
      answer.report = finding.dump() + "\n";
      answer.failure = Ended(RoleFailure::Kind::kSignaled);
      return answer;
    };
  }
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == verdict);
  CHECK(conclusion.reason.find("k, block (1,0,0), thread (2,0,0): byte 1024 of 1024") !=
        std::string::npos);
}

TEST_CASE("doubtful behaviour with right outputs is a note") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    answer.findings = json::array({{{"kind", "divergent_shuffle"}, {"kernel", "k"}}});
    return answer;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_PASSED);
  CHECK(f.report.verify().notes(0) == "divergent shuffle: k");
}

TEST_CASE("each way that a process can end has its verdict") {
  using Kind = RoleFailure::Kind;
  auto [kind, solution, reference] = GENERATE(table<Kind, v1::Verdict, v1::Verdict>({
      {Kind::kDeadline, v1::VERDICT_TIME_LIMIT, v1::VERDICT_UNSUPPORTED},
      {Kind::kExited, v1::VERDICT_CRASHED, v1::VERDICT_INVALID_TASK},
      {Kind::kSignaled, v1::VERDICT_CRASHED, v1::VERDICT_INVALID_TASK},
      {Kind::kMemory, v1::VERDICT_HOST_MEMORY, v1::VERDICT_UNSUPPORTED},
      {Kind::kProcessLimit, v1::VERDICT_PROCESS_LIMIT, v1::VERDICT_UNSUPPORTED},
      {Kind::kOutputLimit, v1::VERDICT_OUTPUT_LIMIT, v1::VERDICT_UNSUPPORTED},
      {Kind::kDiskLimit, v1::VERDICT_DISK_LIMIT, v1::VERDICT_UNSUPPORTED},
      {Kind::kProtocol, v1::VERDICT_TAMPERING, v1::VERDICT_INVALID_TASK},
      {Kind::kInfrastructure, v1::VERDICT_INFRASTRUCTURE, v1::VERDICT_INFRASTRUCTURE},
  }));
  {
    Fixture f;
    f.roles.candidate = [failure = Ended(kind)](const CandidateProcess&) {
      CandidateAnswer answer;
      answer.failure = failure;
      return answer;
    };
    CHECK(f.Verify().verdict == solution);
  }
  {
    Fixture f;
    f.roles.candidate_load_failure = Ended(kind);
    CHECK(f.Verify().verdict == solution);
  }
  {
    Fixture f;
    f.roles.reference_case_failure = Ended(kind);
    CHECK(f.Verify().verdict == reference);
  }
}

TEST_CASE("a solution's process cannot claim a verdict that would clear it") {
  Fixture f;
  std::string claim = GENERATE("PASSED", "INFRASTRUCTURE", "INVALID_TASK", "nonsense", "");
  SECTION("when it is loaded") {
    f.roles.candidate_load_refusal = {{"ok", false}, {"verdict", claim}, {"error", "no"}};
  }
  SECTION("when it is called") {
    f.roles.candidate = [claim](const CandidateProcess&) {
      CandidateAnswer answer;
      answer.refusal = {{"ok", false}, {"verdict", claim}, {"error", "no"}};
      return answer;
    };
  }
  CHECK(f.Verify().verdict == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("an answer that is none is tampering") {
  Fixture f;
  f.roles.candidate = [](const CandidateProcess& p) {
    CandidateAnswer answer = Right(p);
    answer.extra = {{"outputs",
                     {{"k", "tensor"},
                      {"dtype", "float32"},
                      {"shape", {1 << 30}},
                      {"offset", 0},
                      {"bytes", int64_t{4} << 30}}}};
    return answer;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_TAMPERING);
}

TEST_CASE("a reference that does not run makes the task invalid, with its error") {
  Fixture f;
  f.roles.reference_load_refusal = {
      {"ok", false}, {"verdict", "INVALID_TASK"}, {"error", "NameError: name 'x' is not defined"}};
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_INVALID_TASK);
  CHECK(conclusion.reason == "NameError: name 'x' is not defined");
  CHECK(f.roles.candidates == 0);
}

TEST_CASE("a task whose outputs are zero whatever comes in judges nobody") {
  Fixture f;
  f.roles.reference = [](const std::vector<float>& x) {
    return std::vector<float>(x.size(), 0.0F);
  };
  f.roles.candidate = [](const CandidateProcess& p) {
    return CandidateAnswer{std::vector<float>(p.inputs.size(), 0.0F)};
  };
  CHECK(f.Verify().verdict == v1::VERDICT_INVALID_TASK);
}

TEST_CASE("a reference that is random blames no solution") {
  Fixture f;
  int calls = 0;
  f.roles.reference = [&](const std::vector<float>& x) {
    std::vector<float> y = Square(x);
    for (float& value : y) value += static_cast<float>(calls);
    ++calls;
    return y;
  };
  CHECK(f.Verify().verdict == v1::VERDICT_INVALID_TASK);
}

TEST_CASE("trouble with starting processes is the machine's") {
  Fixture f;
  f.roles.start_failure = absl::UnavailableError("no more memory for a fork");
  Conclusion conclusion = f.Verify();
  CHECK(conclusion.verdict == v1::VERDICT_INFRASTRUCTURE);
  CHECK(conclusion.reason.find("no more memory for a fork") != std::string::npos);
}

TEST_CASE("public seeds of a task are computed once") {
  Fixture f;
  REQUIRE(f.Verify().passed());
  int first = f.roles.cases;
  f.report.Clear();
  REQUIRE(f.Verify().passed());
  CHECK(f.roles.cases - first == first - 2);
  // A solution that fails at the first public seed needs no process of the reference but
  // to look whether the reference is to blame.
  f.roles.candidate = [](const CandidateProcess&) {
    CandidateAnswer answer;
    answer.failure = Ended(RoleFailure::Kind::kSignaled);
    return answer;
  };
  int references = f.roles.references;
  f.Verify();
  CHECK(f.roles.references == references);
}

TEST_CASE("the reference cache keeps its bound and another scale is another task") {
  ReferenceCache cache(10'000);
  auto big = std::make_shared<TaskCase>();
  big->inputs.block = std::make_shared<const std::string>(6'000, 'x');
  cache.Put("one", std::shared_ptr<const TaskCase>(big));
  cache.Put("two", std::shared_ptr<const TaskCase>(big));
  CHECK(cache.FindCase("one") == nullptr);
  CHECK(cache.FindCase("two") != nullptr);
  CHECK(cache.size_bytes() <= 10'000);
  auto huge = std::make_shared<TaskCase>();
  huge->inputs.block = std::make_shared<const std::string>(20'000, 'x');
  cache.Put("three", std::shared_ptr<const TaskCase>(huge));
  CHECK(cache.FindCase("three") == nullptr);
  CHECK(cache.FindCase("two") != nullptr);
}

}  // namespace
}  // namespace kmosaic
