#include "cli/taskfiles/job_sections.h"

#include <filesystem>
#include <limits>

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

bool NotNegative(double value) { return value >= 0; }

}  // namespace

google::protobuf::Duration ToWireDuration(absl::Duration duration) {
  google::protobuf::Duration wire;
  wire.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  wire.set_nanos(
      static_cast<int32_t>(absl::IDivDuration(duration, absl::Nanoseconds(1), &duration)));
  return wire;
}

std::string ResolvePath(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

void ReadSamplingSection(YamlMapping& job, v1::Sampling& wire) {
  wire.set_temperature(0.8);
  wire.set_max_tokens(8192);
  auto sampling = job.Mapping("sampling");
  if (!sampling) return;
  if (auto value = sampling->Number("temperature", "a number from 0 to 2",
                                    [](double v) { return v >= 0 && v <= 2; })) {
    wire.set_temperature(*value);
  }
  if (auto value = sampling->Integer("max_tokens", 1, kMaxUint32)) {
    wire.set_max_tokens(static_cast<uint32_t>(*value));
  }
  if (auto value = sampling->Number("top_p", "a number above 0 and up to 1",
                                    [](double v) { return v > 0 && v <= 1; })) {
    wire.set_top_p(*value);
  }
  if (auto values = sampling->NumberList("temperatures", "a number from 0 to 2",
                                         [](double v) { return v >= 0 && v <= 2; })) {
    for (double value : *values) wire.add_temperatures(value);
    if (sampling->Has("temperature")) {
      sampling->Fail("temperatures", "write either temperature or temperatures");
    }
  }
  if (auto value = sampling->Integer("seed", std::numeric_limits<int64_t>::min())) {
    wire.set_seed(*value);
  }
  sampling->Finish();
}

void ReadBudgetSection(YamlMapping& job, v1::Budget& wire) {
  wire.set_turns(10);
  wire.set_optimise_turns(3);
  wire.set_context_tokens(32768);
  auto budget = job.Mapping("budget");
  if (!budget) return;
  if (auto value = budget->Integer("turns", 0, kMaxUint32)) {
    wire.set_turns(static_cast<uint32_t>(*value));
  }
  if (auto value = budget->Integer("tokens", 0)) wire.set_tokens(static_cast<uint64_t>(*value));
  if (auto value = budget->Number("cost_usd", "a number of at least 0", NotNegative)) {
    wire.set_cost_usd(*value);
  }
  if (auto value = budget->DurationOf("time")) *wire.mutable_time() = ToWireDuration(*value);
  if (auto value = budget->Integer("optimise_turns", 0, kMaxUint32)) {
    wire.set_optimise_turns(static_cast<uint32_t>(*value));
  }
  if (auto value = budget->Integer("context_tokens", 0, kMaxUint32)) {
    wire.set_context_tokens(static_cast<uint32_t>(*value));
  }
  budget->Finish();
}

void ReadJobBudgetSection(YamlMapping& job, v1::JobSpec& spec) {
  auto budget = job.Mapping("job_budget");
  if (!budget) return;
  v1::JobBudget& wire = *spec.mutable_job_budget();
  if (auto value = budget->Integer("tokens", 0)) wire.set_tokens(static_cast<uint64_t>(*value));
  if (auto value = budget->Number("cost_usd", "a number of at least 0", NotNegative)) {
    wire.set_cost_usd(*value);
  }
  if (auto value = budget->DurationOf("time")) *wire.mutable_time() = ToWireDuration(*value);
  budget->Finish();
}

void ReadEvaluationSection(YamlMapping& job, v1::EvaluationSpec& wire) {
  auto evaluation = job.Mapping("evaluation");
  if (!evaluation) return;
  if (auto device = evaluation->Choice("device", {"auto", "emulated", "cuda"})) {
    if (*device == "emulated") wire.set_device(v1::DEVICE_KIND_EMULATED);
    if (*device == "cuda") wire.set_device(v1::DEVICE_KIND_CUDA);
  }
  if (auto value = evaluation->Number("scale", "a number from 0 to 1",
                                      [](double v) { return v >= 0 && v <= 1; })) {
    wire.set_scale(*value);
  }
  if (auto value = evaluation->Integer("public_seeds", 0, kMaxUint32)) {
    wire.set_public_seeds(static_cast<uint32_t>(*value));
  }
  if (auto value = evaluation->Integer("secret_seeds", 0, kMaxUint32)) {
    wire.set_secret_seeds(static_cast<uint32_t>(*value));
  }
  if (auto value = evaluation->Bool("benchmark")) wire.set_benchmark(*value);
  if (wire.benchmark() && wire.device() == v1::DEVICE_KIND_EMULATED) {
    evaluation->Fail("benchmark", "the emulated device has no times; use device: cuda or auto");
  }
  if (auto value = evaluation->Bool("compile_baseline")) {
    wire.set_compile_baseline(*value);
    if (*value && !wire.benchmark())
      evaluation->Fail("compile_baseline", "needs evaluation.benchmark: true");
  }
  if (auto labels = evaluation->TextMap("require")) {
    for (const auto& [key, value] : *labels) (*wire.mutable_require())[key] = value;
  }
  evaluation->Finish();
}

}  // namespace kmosaic
