#include "cli/taskfiles/endpoint_section.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/taskfiles/job_sections.h"
#include "cli/taskfiles/recordings.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMaxWeight = 1000;

bool NotNegative(double value) { return value >= 0; }

void ReadPrices(YamlMapping& endpoint, v1::Endpoint& wire) {
  auto price = [&](const char* key) {
    return endpoint.Number(key, "a number of at least 0", NotNegative).value_or(0);
  };
  wire.set_prompt_usd_per_million(price("prompt_usd_per_million"));
  wire.set_cached_prompt_usd_per_million(price("cached_prompt_usd_per_million"));
  wire.set_completion_usd_per_million(price("completion_usd_per_million"));
}

void ReadTimeouts(YamlMapping& endpoint, v1::Endpoint& wire) {
  if (auto value = endpoint.DurationOf("connect_timeout")) {
    *wire.mutable_connect_timeout() = ToWireDuration(*value);
  }
  if (auto value = endpoint.DurationOf("first_byte_timeout")) {
    *wire.mutable_first_byte_timeout() = ToWireDuration(*value);
  }
  if (auto value = endpoint.DurationOf("idle_timeout")) {
    *wire.mutable_idle_timeout() = ToWireDuration(*value);
  }
}

void ReadDialect(YamlMapping& endpoint, v1::Endpoint& wire) {
  static const std::vector<std::string> parameters = {"temperature", "top_p", "seed",
                                                      "stream_options", "parallel_tool_calls"};
  auto dialect = endpoint.Mapping("dialect");
  if (!dialect) return;
  wire.mutable_dialect()->set_max_completion_tokens(
      dialect->Bool("max_completion_tokens").value_or(false));
  if (auto omitted = dialect->TextList("omit")) {
    for (const YamlText& parameter : *omitted) {
      if (std::find(parameters.begin(), parameters.end(), parameter.text) == parameters.end()) {
        dialect->Fail("omit", absl::StrCat("\"", parameter.text, "\" cannot be left out; known: ",
                                           absl::StrJoin(parameters, ", ")));
      }
      wire.mutable_dialect()->add_omit(parameter.text);
    }
  }
  if (auto extra = dialect->Text("extra")) {
    if (!nlohmann::json::parse(*extra, nullptr, false).is_object()) {
      dialect->Fail("extra",
                    "must be the text of a JSON object, '{\"reasoning_effort\": \"low\"}'");
    }
    wire.mutable_dialect()->set_extra(*extra);
  }
  dialect->Finish();
}

void ReadServer(YamlMapping& endpoint, v1::Endpoint& wire) {
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
  wire.set_requests_per_minute(
      static_cast<uint32_t>(endpoint.Integer("requests_per_minute", 0, kMaxUint32).value_or(0)));
  wire.set_tokens_per_minute(
      static_cast<uint64_t>(endpoint.Integer("tokens_per_minute", 0).value_or(0)));
  ReadPrices(endpoint, wire);
  ReadTimeouts(endpoint, wire);
  ReadDialect(endpoint, wire);
}

std::set<std::string> ReadEndpoint(YamlMapping& endpoint, const std::string& folder,
                                   v1::Endpoint& wire, Problems& problems) {
  endpoint.Require("kind", "write kind: openai, kind: anthropic or kind: replay");
  auto kind = endpoint.Choice("kind", {"replay", "openai", "anthropic"});
  wire.set_name(endpoint.Text("name").value_or(kind.value_or("")));
  wire.set_max_concurrency(
      static_cast<uint32_t>(endpoint.Integer("max_concurrency", 0, kMaxUint32).value_or(8)));
  *wire.mutable_timeout() =
      ToWireDuration(endpoint.DurationOf("timeout").value_or(absl::Minutes(10)));
  // The keys of the kind are not known without it.
  if (!kind) return {};
  std::set<std::string> recorded;
  if (*kind == "replay") {
    wire.set_kind(v1::ENDPOINT_KIND_REPLAY);
    endpoint.Require("recordings", "name a JSON Lines file of recorded replies");
    if (auto path = endpoint.Text("recordings")) {
      auto recordings =
          ReadRecordings(ResolvePath(folder, *path), endpoint.At("recordings"), problems);
      if (recordings) {
        wire.set_recordings(recordings->text);
        recorded = recordings->tasks;
      }
    }
  } else {
    wire.set_kind(*kind == "openai" ? v1::ENDPOINT_KIND_OPENAI : v1::ENDPOINT_KIND_ANTHROPIC);
    ReadServer(endpoint, wire);
  }
  return recorded;
}

void ReadSeveral(YamlMapping& job, const std::string& folder, v1::JobSpec& spec,
                 Problems& problems) {
  auto endpoints = job.MappingList("endpoints");
  if (!endpoints) return;
  if (endpoints->empty()) job.Fail("endpoints", "names no endpoint");
  std::set<std::string> names;
  for (size_t i = 0; i < endpoints->size(); ++i) {
    YamlMapping& endpoint = (*endpoints)[i];
    v1::Endpoint& wire = i == 0 ? *spec.mutable_endpoint() : *spec.add_further_endpoints();
    wire.set_weight(static_cast<uint32_t>(endpoint.Integer("weight", 1, kMaxWeight).value_or(1)));
    ReadEndpoint(endpoint, folder, wire, problems);
    if (!names.insert(wire.name()).second) {
      endpoint.Fail("name", absl::StrCat("another endpoint of the job is named \"", wire.name(),
                                         "\"; give each a name of its own"));
    }
    endpoint.Finish();
  }
}

}  // namespace

std::set<std::string> ReadEndpoints(YamlMapping& job, const std::string& folder, v1::JobSpec& spec,
                                    Problems& problems) {
  if (job.Has("endpoints")) {
    ReadSeveral(job, folder, spec, problems);
    if (job.Has("endpoint")) job.Fail("endpoint", "write either endpoint or endpoints");
    return {};
  }
  job.Require("endpoint",
              "say where replies come from, endpoint: {kind: openai, url: ..., model: ...}");
  auto endpoint = job.Mapping("endpoint");
  if (!endpoint) return {};
  std::set<std::string> recorded =
      ReadEndpoint(*endpoint, folder, *spec.mutable_endpoint(), problems);
  if (spec.endpoint().kind() != v1::ENDPOINT_KIND_UNSPECIFIED) endpoint->Finish();
  return recorded;
}

}  // namespace kmosaic
