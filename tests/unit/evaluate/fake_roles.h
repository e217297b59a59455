// Roles that are answered by functions instead of Python.
#ifndef KMOSAIC_TESTS_UNIT_EVALUATE_FAKE_ROLES_H_
#define KMOSAIC_TESTS_UNIT_EVALUATE_FAKE_ROLES_H_

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "gpu_worker/evaluate/role.h"

namespace kmosaic::testing {

// What FakeRoles' reference computes, and a candidate that does the same.
std::vector<float> Square(const std::vector<float>& x);

// What a fake process does with a request.
struct FakeAnswer {
  nlohmann::json message;
  std::vector<std::string> blocks;  // become descriptors
  std::optional<RoleFailure> failure;
};

// float32 numbers of one tensor, as node and block.
nlohmann::json FloatNode(size_t count);
std::string FloatBlock(const std::vector<float>& numbers);
std::vector<float> ReadFloats(int fd);

// How one candidate process was started, for behaviour that depends on it.
struct CandidateProcess {
  std::string schedule;
  uint8_t poison = 0;
  uint64_t weight_seed = 0;
  int calls = 0;  // of run, this one included
  uint64_t seed = 0;
  std::vector<float> inputs;  // of a timed call: changed by its key
  int timed_calls = 0;
};

// What a process says of a timed call, and how long the daemon waits for the answer.
struct FakeTimes {
  double event_us = 100;
  double joined_us = 105;
  double host_us = 110;
  double outside_us = 400;
  nlohmann::json reply;  // replaces the answer
};

// What a candidate's call gives.
struct CandidateAnswer {
  std::vector<float> outputs;
  std::optional<std::vector<float>> inputs_after;  // default: unchanged
  std::optional<uint64_t> launches = 1;
  nlohmann::json findings = nlohmann::json::array();
  nlohmann::json refusal;              // replaces the answer
  std::optional<RoleFailure> failure;  // the process ends
  std::string report;                  // written before it ends
  nlohmann::json extra = nlohmann::json::object();
};
CandidateAnswer Right(const CandidateProcess& process);

// A task of one input of kSize floats and one output, and a solution.
class FakeRoles : public RoleStarter {
 public:
  static constexpr size_t kSize = 256;

  std::function<std::vector<float>(const std::vector<float>&)> reference;
  // Overrides the inputs of a family; default: normal numbers from the seed, scaled.
  std::function<std::vector<float>(const std::string& family, uint64_t seed)> inputs;
  // Where kernels are left out its outputs are zeros, unless something else computes them.
  std::function<CandidateAnswer(const CandidateProcess&)> candidate;
  bool needs_kernels = true;
  // Of timed calls: number of the call in its process, from 1.
  std::function<FakeTimes(int call)> reference_time = [](int) { return FakeTimes{}; };
  std::function<FakeTimes(int call)> candidate_time = [](int) { return FakeTimes{}; };
  FakeClock* clock = nullptr;  // timed calls move it
  uint64_t multiply_adds = 0;
  // Replaces the answer of the reference to a request of this name.
  std::map<std::string, nlohmann::json> reference_refusals;
  nlohmann::json collect_reply;
  nlohmann::json reference_load_refusal;
  nlohmann::json candidate_load_refusal;
  std::optional<RoleFailure> candidate_load_failure;
  std::optional<RoleFailure> reference_case_failure;
  absl::Status start_failure;
  // Of the reference that was loaded last.
  double scale = 1;
  // Started so far.
  int references = 0;
  int candidates = 0;
  int collects = 0;
  int cases = 0;
  int timed_references = 0;
  std::vector<uint64_t> keys;  // of the candidates' timed calls

  absl::StatusOr<std::unique_ptr<Role>> Start(RoleKind kind, const RoleLimits& limits,
                                              const std::vector<std::string>& readable) override;
};

}  // namespace kmosaic::testing

#endif  // KMOSAIC_TESTS_UNIT_EVALUATE_FAKE_ROLES_H_
