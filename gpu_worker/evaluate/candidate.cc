#include "gpu_worker/evaluate/candidate.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "gpu_worker/evaluate/work_cost.h"
#include "gpu_worker/sandbox/memfd.h"

namespace kmosaic {
namespace {

using nlohmann::json;

// Room for the findings that survive a crash.
constexpr uint64_t kReportBytes = 64 << 10;

std::string Text(const json& reply, const char* key) {
  auto found = reply.find(key);
  return found != reply.end() && found->is_string() ? found->get<std::string>() : "";
}

bool IsOk(const json& reply) {
  auto found = reply.find("ok");
  return found != reply.end() && found->is_boolean() && found->get<bool>();
}

// What an entry's outputs have to be: those of the reference.
json OutputShapes(const Value& expected) {
  json shapes = json::array();
  for (const Leaf& leaf : Leaves(expected)) {
    if (leaf.value->kind != Value::Kind::kTensor) continue;
    shapes.push_back(
        {{"dtype", leaf.value->tensor.dtype_name}, {"shape", leaf.value->tensor.shape}});
  }
  return shapes;
}

}  // namespace

Candidate::Candidate(Options options, RoleStarter* starter, Cancellation* cancellation)
    : options_(std::move(options)), starter_(starter), cancellation_(cancellation) {}

Candidate::~Candidate() = default;

std::string Candidate::Output() { return role_ == nullptr ? "" : role_->Output(); }

Conclusion Candidate::ConcludeEnd(const absl::Status& status, const std::string& doing) {
  if (!role_->failure().has_value()) return ConcludeMachine(status);
  const RoleFailure& failure = *role_->failure();
  // What the device saw explains a crash or a hang better than the signal does; it
  // explains no other end.
  using Kind = RoleFailure::Kind;
  if (failure.kind == Kind::kSignaled || failure.kind == Kind::kExited ||
      failure.kind == Kind::kDeadline) {
    if (auto report = ReadBlock(report_.get(), kReportBytes * 16); report.ok()) {
      if (auto found = Conclude(ParseReport(**report)); found.has_value()) return *found;
    }
  }
  return ConcludeFailure(failure, Untrusted::kSolution, doing);
}

Conclusion Candidate::Load(const Parcel& init) {
  auto started = starter_->Start(RoleKind::kCandidate, options_.limits.role, {options_.artifact});
  if (!started.ok()) return ConcludeMachine(Annotate(started.status(), "candidate process"));
  role_ = *std::move(started);
  on_cancel_ = cancellation_->OnCancel([role = role_.get()] { role->Kill(); });
  auto report = WritableMemfd("report", kReportBytes);
  if (!report.ok()) return ConcludeMachine(report.status());
  report_ = *std::move(report);
  auto init_fd = init.ToDescriptor("init");
  if (!init_fd.ok()) return ConcludeMachine(init_fd.status());
  bool is_entry = options_.solution.contract() == v1::CONTRACT_CUDA;
  json entry;
  if (is_entry) {
    entry = {{"prototype", options_.entry.prototype()}, {"bindings", json::object()}};
    for (const auto& [name, binding] : options_.entry.bindings()) {
      entry["bindings"][name] = binding;
    }
  }
  json request = {{"op", "load"},
                  {"contract", ContractName(options_.solution.contract())},
                  {"source", options_.solution.source()},
                  {"artifact", options_.artifact},
                  {"entry", entry},
                  {"init", init.node},
                  {"weight_seed", options_.weight_seed},
                  {"weights_on", options_.weights_on},
                  {"device", options_.device},
                  {"memory", BlockMemoryName(options_.memory)},
                  {"schedule", options_.schedule},
                  {"poison", options_.poison}};
  auto reply = role_->Call(request, {init_fd->get(), report_.get()}, options_.limits.load);
  if (!reply.ok()) return ConcludeEnd(reply.status(), "being loaded");
  if (IsOk(reply->message)) return Conclusion();
  return ConcludeRefusal(Text(reply->message, "verdict"), Text(reply->message, "error"),
                         Untrusted::kSolution, is_entry);
}

absl::StatusOr<Frame> Candidate::CallWithInputs(json request, const TaskCase& task_case) {
  bool is_entry = options_.solution.contract() == v1::CONTRACT_CUDA;
  KMOSAIC_ASSIGN_OR_RETURN(UniqueFd inputs, task_case.inputs.ToDescriptor("inputs"));
  std::vector<int> fds = {inputs.get()};
  UniqueFd parameters;
  request["parameters"] = json();
  if (is_entry && task_case.parameters.has_value()) {
    KMOSAIC_ASSIGN_OR_RETURN(parameters, task_case.parameters->ToDescriptor("parameters"));
    request["parameters"] = task_case.parameters->node;
    fds.push_back(parameters.get());
  }
  request["inputs"] = task_case.inputs.node;
  // An entry writes to what it gets; for others it says what fresh memory will be taken.
  request["outputs"] = OutputShapes(task_case.expected.value);
  request["seed"] = task_case.seed;
  return role_->Call(request, fds, options_.limits.run);
}

std::variant<Frame, Conclusion> Candidate::Ask(const json& request, const std::string& doing) {
  auto reply = role_->Call(request, {}, options_.limits.run);
  if (!reply.ok()) return ConcludeEnd(reply.status(), doing);
  if (IsOk(reply->message)) return *std::move(reply);
  return ConcludeRefusal(Text(reply->message, "verdict"), Text(reply->message, "error"),
                         Untrusted::kSolution, options_.solution.contract() == v1::CONTRACT_CUDA);
}

Conclusion Candidate::BeginTiming(const TaskCase& task_case, std::vector<std::string>* notes) {
  auto reply = CallWithInputs({{"op", "time_begin"}, {"fresh", task_case.fresh}}, task_case);
  if (!reply.ok()) return ConcludeEnd(reply.status(), "being prepared to be timed");
  if (!IsOk(reply->message)) {
    return ConcludeRefusal(Text(reply->message, "verdict"), Text(reply->message, "error"),
                           Untrusted::kSolution, options_.solution.contract() == v1::CONTRACT_CUDA);
  }
  for (const json& note : reply->message.value("notes", json::array())) {
    if (note.is_string()) notes->push_back(note.get<std::string>());
  }
  return Conclusion();
}

std::variant<json, Conclusion> Candidate::TimeCall(uint64_t key) {
  auto asked = Ask({{"op", "time_sample"}, {"key", key}}, "timed");
  if (auto* failed = std::get_if<Conclusion>(&asked)) return *failed;
  return std::get<Frame>(std::move(asked)).message;
}

std::variant<Parcel, Conclusion> Candidate::TimedOutputs() {
  auto asked = Ask({{"op", "time_outputs"}}, "giving the outputs of a timed call");
  if (auto* failed = std::get_if<Conclusion>(&asked)) return *failed;
  const Frame& frame = std::get<Frame>(asked);
  size_t next = 0;
  auto outputs = ReadParcel(frame.message.value("outputs", json()), frame.fds, &next,
                            options_.limits.block_bytes, options_.memory);
  if (!outputs.ok()) return ConcludeTampered(outputs.status());
  return *std::move(outputs);
}

std::variant<RunResult, Conclusion> Candidate::Run(const TaskCase& task_case) {
  bool is_entry = options_.solution.contract() == v1::CONTRACT_CUDA;
  auto reply = CallWithInputs({{"op", "run"}}, task_case);
  if (!reply.ok()) return ConcludeEnd(reply.status(), "run");
  const json& message = reply->message;
  std::vector<DeviceFinding> findings = ParseFindings(message.value("findings", json()));
  if (!IsOk(message)) {
    // An error that the program raised after the device saw what caused it.
    if (auto seen = Conclude(findings); seen.has_value()) {
      absl::StrAppend(&seen->reason, "; then: ", Text(message, "error"));
      return *seen;
    }
    return ConcludeRefusal(Text(message, "verdict"), Text(message, "error"), Untrusted::kSolution,
                           is_entry);
  }
  RunResult result;
  size_t next = 0;
  auto outputs = ReadParcel(message.value("outputs", json()), reply->fds, &next,
                            options_.limits.block_bytes, options_.memory);
  if (!outputs.ok()) return ConcludeTampered(outputs.status());
  auto after = ReadParcel(message.value("inputs_after", json()), reply->fds, &next,
                          options_.limits.block_bytes, options_.memory);
  if (!after.ok()) return ConcludeTampered(after.status());
  result.outputs = *std::move(outputs);
  result.inputs_after = *std::move(after);
  result.findings = std::move(findings);
  if (auto launches = message.find("launches");
      launches != message.end() && launches->is_number_unsigned()) {
    result.launches = launches->get<uint64_t>();
  }
  if (auto work = message.find("work"); work != message.end() && work->is_object()) {
    result.work = ParseWork(*work);
  }
  for (const json& alias : message.value("aliases", json::array())) {
    if (!alias.is_object()) continue;
    auto index = alias.find("index");
    auto input = alias.find("input");
    if (index == alias.end() || input == alias.end() || !index->is_number_unsigned() ||
        !input->is_number_unsigned()) {
      continue;
    }
    result.aliases.emplace_back(index->get<uint32_t>(), input->get<uint32_t>());
  }
  return result;
}

}  // namespace kmosaic
