#include "cli/taskfiles/job_sections.h"

#include <filesystem>
#include <limits>
#include <regex>

#include "absl/strings/str_cat.h"
#include "cli/taskfiles/recordings.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

bool NotNegative(double value) { return value >= 0; }

google::protobuf::Duration ToWire(absl::Duration duration) {
  google::protobuf::Duration wire;
  wire.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  wire.set_nanos(
      static_cast<int32_t>(absl::IDivDuration(duration, absl::Nanoseconds(1), &duration)));
  return wire;
}

void ReadOpenAi(YamlMapping& endpoint, v1::Endpoint& wire) {
  static const std::regex url(R"(https?://[^/\s]+(/\S*)?)");
  endpoint.Require("url", "write the base URL with its version, http://127.0.0.1:8000/v1");
  if (auto text = endpoint.Text("url")) {
    if (!std::regex_match(*text, url)) {
      endpoint.Fail("url", absl::StrCat("\"", *text,
                                        "\" must begin with http:// or https:// and name a host"));
    }
    wire.set_url(*text);
  }
  endpoint.Require("model", "write the model's name as the endpoint knows it");
  if (auto model = endpoint.Text("model")) wire.set_model(*model);
  if (auto name = endpoint.Text("api_key_env")) {
    static const std::regex variable(R"([A-Za-z_][A-Za-z0-9_]*)");
    if (!std::regex_match(*name, variable)) {
      // The text may be a key, so it is not repeated.
      endpoint.Fail("api_key_env",
                    "must be the name of an environment variable of the agent "
                    "runner, not the key itself");
    }
    wire.set_api_key_env(*name);
  }
  wire.set_stream(endpoint.Bool("stream").value_or(true));
  if (auto price =
          endpoint.Number("prompt_usd_per_million", "a number of at least 0", NotNegative)) {
    wire.set_prompt_usd_per_million(*price);
  }
  if (auto price =
          endpoint.Number("completion_usd_per_million", "a number of at least 0", NotNegative)) {
    wire.set_completion_usd_per_million(*price);
  }
}

}  // namespace

std::string ResolvePath(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

std::set<std::string> ReadEndpointSection(YamlMapping& job, const std::string& folder,
                                          v1::Endpoint& wire, Problems& problems) {
  job.Require("endpoint",
              "say where replies come from, endpoint: {kind: openai, url: ..., model: ...}");
  auto endpoint = job.Mapping("endpoint");
  if (!endpoint) return {};
  endpoint->Require("kind", "write kind: openai or kind: replay");
  auto kind = endpoint->Choice("kind", {"replay", "openai"});
  wire.set_name(endpoint->Text("name").value_or(kind.value_or("")));
  wire.set_max_concurrency(
      static_cast<uint32_t>(endpoint->Integer("max_concurrency", 0, kMaxUint32).value_or(8)));
  *wire.mutable_timeout() = ToWire(endpoint->DurationOf("timeout").value_or(absl::Minutes(10)));
  // The keys of the kind are not known without it.
  if (!kind) return {};
  std::set<std::string> recorded;
  if (*kind == "replay") {
    wire.set_kind(v1::ENDPOINT_KIND_REPLAY);
    endpoint->Require("recordings", "name a JSON Lines file of recorded replies");
    if (auto path = endpoint->Text("recordings")) {
      auto recordings =
          ReadRecordings(ResolvePath(folder, *path), endpoint->At("recordings"), problems);
      if (recordings) {
        wire.set_recordings(recordings->text);
        recorded = recordings->tasks;
      }
    }
  } else {
    wire.set_kind(v1::ENDPOINT_KIND_OPENAI);
    ReadOpenAi(*endpoint, wire);
  }
  endpoint->Finish();
  return recorded;
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
  if (auto value = budget->DurationOf("time")) *wire.mutable_time() = ToWire(*value);
  if (auto value = budget->Integer("optimise_turns", 0, kMaxUint32)) {
    wire.set_optimise_turns(static_cast<uint32_t>(*value));
  }
  if (auto value = budget->Integer("context_tokens", 0, kMaxUint32)) {
    wire.set_context_tokens(static_cast<uint32_t>(*value));
  }
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
