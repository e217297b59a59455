#include "tests/unit/evaluate/fake_roles.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "gpu_worker/sandbox/memfd.h"

namespace kmosaic::testing {

std::vector<float> Square(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] + 1.0F;
  return y;
}

CandidateAnswer Right(const CandidateProcess& process) {
  CandidateAnswer answer;
  answer.outputs = Square(process.inputs);
  return answer;
}
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

// What a key does to the inputs of a timed call.
std::vector<float> Changed(std::vector<float> inputs, uint64_t key) {
  inputs[key % inputs.size()] = 3.0F;
  return inputs;
}

json Answered(const FakeTimes& times) {
  if (!times.reply.is_null()) return times.reply;
  return {{"ok", true},
          {"event_us", times.event_us},
          {"joined_us", times.joined_us},
          {"host_us", times.host_us}};
}

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
    auto calls = std::make_shared<int>(0);
    return std::make_unique<FakeRole>([this, calls](const json& request, const std::vector<int>&) {
      FakeAnswer answer;
      if (auto refused = reference_refusals.find(request["op"].get<std::string>());
          refused != reference_refusals.end()) {
        return FakeAnswer{refused->second, {}, {}};
      }
      if (request["op"] == "time_begin") {
        ++timed_references;
        answer.message = {{"ok", true},
                          {"launch_us", 4.0},
                          {"tf32", {{"matmul", false}, {"cudnn", true}}},
                          {"notes", json::array()}};
        return answer;
      }
      if (request["op"] == "time_sample") {
        FakeTimes times = reference_time(++*calls);
        if (clock != nullptr) clock->Advance(absl::Microseconds(times.outside_us));
        answer.message = Answered(times);
        return answer;
      }
      if (request["op"] == "load") {
        scale = request["scale"];
        if (!reference_load_refusal.is_null()) return FakeAnswer{reference_load_refusal, {}, {}};
        answer.message = {{"ok", true},
                          {"init", {{"k", "list"}, {"items", json::array()}}},
                          {"shapes", {{"N", kSize}}},
                          {"multiply_adds", multiply_adds},
                          {"parameter_bytes", 0},
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
      if (request.contains("key")) given = Changed(given, request["key"]);
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
                        {"fresh", {0}},
                        {"notes", json::array()}};
      answer.blocks = {FloatBlock(given), FloatBlock(expected), DoubleBlock(expected)};
      return answer;
    });
  }
  ++candidates;
  auto process = std::make_shared<CandidateProcess>();
  auto report = std::make_shared<UniqueFd>();
  auto base = std::make_shared<std::vector<float>>();
  auto last = std::make_shared<CandidateAnswer>();  // of timed calls
  return std::make_unique<FakeRole>(
      [this, process, report, base, last](const json& request, const std::vector<int>& fds) {
        if (request["op"] == "load") {
          process->schedule = request["schedule"];
          process->poison = request["poison"];
          process->weight_seed = request["weight_seed"];
          *report = UniqueFd(dup(fds.at(1)));
          if (candidate_load_failure.has_value()) return FakeAnswer{{}, {}, candidate_load_failure};
          if (!candidate_load_refusal.is_null()) return FakeAnswer{candidate_load_refusal, {}, {}};
          return FakeAnswer{{{"ok", true}}, {}, {}};
        }
        if (request["op"] == "time_sample") {
          keys.push_back(request["key"]);
          process->inputs = Changed(*base, request["key"]);
          FakeTimes times = candidate_time(++process->timed_calls);
          *last = candidate(*process);
          if (clock != nullptr) clock->Advance(absl::Microseconds(times.outside_us));
          return FakeAnswer{Answered(times), {}, {}};
        }
        if (request["op"] == "time_outputs") {
          FakeAnswer answer;
          answer.message = {{"ok", true}, {"outputs", FloatNode(last->outputs.size())}};
          answer.message.update(last->extra);
          answer.blocks = {FloatBlock(last->outputs)};
          return answer;
        }
        if (request["op"] == "time_begin") {
          *base = ReadFloats(fds.at(0));
          process->seed = request["seed"];
          return FakeAnswer{{{"ok", true}, {"notes", json::array()}}, {}, {}};
        }
        ++process->calls;
        process->seed = request["seed"];
        process->inputs = ReadFloats(fds.at(0));
        CandidateAnswer given = candidate(*process);
        if (needs_kernels && process->schedule == "ablated") {
          std::fill(given.outputs.begin(), given.outputs.end(), 0.0F);
        }
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
