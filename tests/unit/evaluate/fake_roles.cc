#include "tests/unit/evaluate/fake_roles.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <utility>

#include "gpu_worker/sandbox/memfd.h"

namespace kmosaic::testing {
namespace {

using nlohmann::json;
using Handler = std::function<FakeAnswer(const json& request, const std::vector<int>& fds)>;

class FakeRole : public Role {
 public:
  explicit FakeRole(Handler handler) : handler_(std::move(handler)) {}

  absl::StatusOr<Frame> Call(const json& request, const std::vector<int>& fds,
                             absl::Duration) override {
    if (failure_.has_value()) return absl::AbortedError("gone");
    FakeAnswer answer = handler_(request, fds);
    if (answer.failure.has_value()) {
      failure_ = answer.failure;
      return absl::AbortedError("ended");
    }
    Frame frame;
    frame.message = std::move(answer.message);
    for (const std::string& block : answer.blocks) {
      frame.fds.push_back(*SealedMemfd("block", block));
    }
    return frame;
  }
  const std::optional<RoleFailure>& failure() const override { return failure_; }
  void Kill() override {}
  std::string Output() override { return "printed by the candidate"; }

 private:
  Handler handler_;
  std::optional<RoleFailure> failure_;
};

json TupleNode() { return {{"k", "tuple"}, {"items", json::array({FloatNode(FakeRoles::kSize)})}}; }

std::vector<float> DefaultInputs(const std::string& family, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  float scale = family == "small" ? 0x1p-10F : family == "large" ? 32.0F : 1.0F;
  std::vector<float> numbers(FakeRoles::kSize);
  for (float& number : numbers) number = scale * normal(generator);
  return numbers;
}

std::string DoubleBlock(const std::vector<float>& numbers) {
  std::string block;
  for (double number : numbers) {
    block.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return block;
}

}  // namespace

json FloatNode(size_t count) {
  return {{"k", "tensor"},      {"dtype", "float32"}, {"shape", json::array({count})},
          {"device", "cuda:0"}, {"offset", 0},        {"bytes", count * 4}};
}

std::string FloatBlock(const std::vector<float>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
}

std::vector<float> ReadFloats(int fd) {
  struct stat size = {};
  fstat(fd, &size);
  std::vector<float> numbers(static_cast<size_t>(size.st_size) / 4);
  if (pread(fd, numbers.data(), numbers.size() * 4, 0) < 0) numbers.clear();
  return numbers;
}

absl::StatusOr<std::unique_ptr<Role>> FakeRoles::Start(RoleKind kind, const RoleLimits&,
                                                       const std::vector<std::string>&) {
  if (!start_failure.ok()) return start_failure;
  if (kind == RoleKind::kCollect) {
    ++collects;
    return std::make_unique<FakeRole>([this](const json&, const std::vector<int>&) {
      return FakeAnswer{collect_reply, {}, {}};
    });
  }
  if (kind == RoleKind::kReference) {
    ++references;
    return std::make_unique<FakeRole>([this](const json& request, const std::vector<int>&) {
      FakeAnswer answer;
      if (request["op"] == "load") {
        if (!reference_load_refusal.is_null()) return FakeAnswer{reference_load_refusal, {}, {}};
        answer.message = {{"ok", true},
                          {"init", {{"k", "list"}, {"items", json::array()}}},
                          {"shapes", {{"N", kSize}}},
                          {"families", {"native", "small", "large", "sparse", "constant"}},
                          {"notes", json::array()}};
        answer.blocks = {""};
        return answer;
      }
      ++cases;
      if (reference_case_failure.has_value()) return FakeAnswer{{}, {}, reference_case_failure};
      std::string family = request["family"];
      uint64_t seed = request["seed"];
      std::vector<float> given = inputs ? inputs(family, seed) : DefaultInputs(family, seed);
      std::vector<float> expected = reference(given);
      json expected64 = FloatNode(kSize);
      expected64["dtype"] = "float64";
      expected64["bytes"] = kSize * 8;
      answer.message = {{"ok", true},
                        {"inputs", TupleNode()},
                        {"expected", FloatNode(kSize)},
                        {"expected64", expected64},
                        {"parameters", nullptr},
                        {"reduction", 1},
                        {"notes", json::array()}};
      answer.blocks = {FloatBlock(given), FloatBlock(expected), DoubleBlock(expected)};
      return answer;
    });
  }
  ++candidates;
  auto process = std::make_shared<CandidateProcess>();
  auto report = std::make_shared<UniqueFd>();
  return std::make_unique<FakeRole>(
      [this, process, report](const json& request, const std::vector<int>& fds) {
        if (request["op"] == "load") {
          process->schedule = request["schedule"];
          process->poison = request["poison"];
          *report = UniqueFd(dup(fds.at(1)));
          if (candidate_load_failure.has_value()) return FakeAnswer{{}, {}, candidate_load_failure};
          if (!candidate_load_refusal.is_null()) return FakeAnswer{candidate_load_refusal, {}, {}};
          return FakeAnswer{{{"ok", true}}, {}, {}};
        }
        ++process->calls;
        process->seed = request["seed"];
        process->inputs = ReadFloats(fds.at(0));
        CandidateAnswer given = candidate(*process);
        if (!given.report.empty()) {
          (void)!pwrite(report->get(), given.report.data(), given.report.size(), 0);
        }
        if (given.failure.has_value()) return FakeAnswer{{}, {}, given.failure};
        if (!given.refusal.is_null()) return FakeAnswer{given.refusal, {}, {}};
        FakeAnswer answer;
        answer.message = {{"ok", true},
                          {"outputs", FloatNode(given.outputs.size())},
                          {"inputs_after", TupleNode()},
                          {"findings", given.findings},
                          {"work", {{"launches", given.launches.value_or(0)}, {"threads", 256}}}};
        if (given.launches.has_value()) answer.message["launches"] = *given.launches;
        answer.message.update(given.extra);
        answer.blocks = {FloatBlock(given.outputs),
                         FloatBlock(given.inputs_after.value_or(process->inputs))};
        return answer;
      });
}

}  // namespace kmosaic::testing
