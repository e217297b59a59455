#include "agent_runner/guidance/guidance_library.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "agent_runner/llm/token_estimate.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr std::string_view kFence = "---";

absl::Status Wrong(const std::string& path, int line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", what));
}

// Line in the file: YAML counts from 0 after the opening "---".
int LineOf(const YAML::Node& node) { return node.Mark().line + 2; }

absl::StatusOr<std::vector<std::string>> Strings(const YAML::Node& node, const std::string& key,
                                                 const std::string& path) {
  if (!node.IsSequence()) {
    return Wrong(path, LineOf(node), absl::StrCat(key, " must be a list of strings"));
  }
  std::vector<std::string> values;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) {
      return Wrong(path, LineOf(item), absl::StrCat(key, " must be a list of strings"));
    }
    values.push_back(item.Scalar());
  }
  return values;
}

std::optional<v1::Stage> ParseStage(const std::string& name) {
  for (v1::Stage stage : {v1::STAGE_IMPLEMENT, v1::STAGE_REPAIR, v1::STAGE_OPTIMISE}) {
    if (StageName(stage) == name) return stage;
  }
  return std::nullopt;
}

constexpr std::pair<std::string_view, Regime> kRegimes[] = {
    {"memory", Regime::kMemory},
    {"arithmetic", Regime::kArithmetic},
    {"launch", Regime::kLaunch},
};

std::optional<Regime> ParseRegime(std::string_view name) {
  for (const auto& [known, regime] : kRegimes) {
    if (known == name) return regime;
  }
  return std::nullopt;
}

std::optional<v1::DeviceKind> ParseDevice(std::string_view name) {
  if (name == "cuda") return v1::DEVICE_KIND_CUDA;
  if (name == "emulated") return v1::DEVICE_KIND_EMULATED;
  return std::nullopt;
}

absl::Status ReadKey(const std::string& key, const YAML::Node& value, const std::string& path,
                     GuidanceDocument* document) {
  int line = LineOf(value);
  if (key == "name") {
    if (!value.IsScalar() || value.Scalar().empty()) return Wrong(path, line, "name is empty");
    document->name = value.Scalar();
    return absl::OkStatus();
  }
  if (key == "version") {
    if (!value.IsScalar() || !YAML::convert<uint32_t>::decode(value, document->version) ||
        document->version == 0) {
      return Wrong(path, line, "version must be a whole number from 1");
    }
    return absl::OkStatus();
  }
  if (key != "stages" && key != "families" && key != "errors" && key != "contracts" &&
      key != "regimes" && key != "devices") {
    return Wrong(path, line,
                 absl::StrCat("unknown key '", key,
                              "'; known: name, version, stages, families, errors, contracts, "
                              "regimes, devices"));
  }
  KMOSAIC_ASSIGN_OR_RETURN(std::vector<std::string> values, Strings(value, key, path));
  for (const std::string& text : values) {
    if (key == "families") {
      document->families.push_back(text);
    } else if (key == "stages") {
      std::optional<v1::Stage> stage = ParseStage(text);
      if (!stage) {
        return Wrong(
            path, line,
            absl::StrCat("unknown stage '", text, "'; known: implement, repair, optimise"));
      }
      document->stages.push_back(*stage);
    } else if (key == "contracts") {
      std::optional<v1::Contract> contract = ParseContract(text);
      if (!contract) {
        return Wrong(path, line,
                     absl::StrCat("unknown contract '", text, "'; known: modelnew, cuda"));
      }
      document->contracts.push_back(*contract);
    } else if (key == "regimes") {
      std::optional<Regime> regime = ParseRegime(text);
      if (!regime) {
        return Wrong(
            path, line,
            absl::StrCat("unknown regime '", text, "'; known: memory, arithmetic, launch"));
      }
      document->regimes.push_back(*regime);
    } else if (key == "devices") {
      std::optional<v1::DeviceKind> device = ParseDevice(text);
      if (!device) {
        return Wrong(path, line,
                     absl::StrCat("unknown device '", text, "'; known: cuda, emulated"));
      }
      document->devices.push_back(*device);
    } else {
      RE2::Options options;
      options.set_log_errors(false);
      auto pattern = std::make_shared<const RE2>(text, options);
      if (!pattern->ok()) {
        return Wrong(path, line, absl::StrCat("pattern '", text, "': ", pattern->error()));
      }
      document->errors.push_back(std::move(pattern));
    }
  }
  return absl::OkStatus();
}

bool Contains(const auto& values, const auto& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool FitsContract(const GuidanceDocument& document, v1::Contract contract) {
  return document.contracts.empty() || Contains(document.contracts, contract);
}

bool FitsDevice(const GuidanceDocument& document, v1::DeviceKind device) {
  return document.devices.empty() || device == v1::DEVICE_KIND_UNSPECIFIED ||
         Contains(document.devices, device);
}

// 0 matched by error, 1 by family and regime, 2 by family, 3 by regime, 4 general; nothing when
// it does not fit.
std::optional<int> Rank(const GuidanceDocument& document, const GuidanceQuery& query) {
  if (!Contains(document.stages, query.stage)) return std::nullopt;
  if (!FitsContract(document, query.contract)) return std::nullopt;
  if (!document.families.empty() && !Contains(document.families, query.family)) {
    return std::nullopt;
  }
  if (!FitsDevice(document, query.device)) return std::nullopt;
  if (!document.regimes.empty() && query.regime != Regime::kUnknown &&
      !Contains(document.regimes, query.regime)) {
    return std::nullopt;
  }
  if (!document.errors.empty()) {
    for (const auto& pattern : document.errors) {
      if (RE2::PartialMatch(query.error, *pattern)) return 0;
    }
    return std::nullopt;
  }
  const bool by_regime = Contains(document.regimes, query.regime);
  return 1 + (document.families.empty() ? 2 : 0) + (by_regime ? 0 : 1);
}

}  // namespace

Regime RegimeOf(const v1::EvaluationReport& report) {
  // A kernel's own work takes at least a few launches' time before it decides.
  constexpr double kLaunchShare = 4;
  const v1::BenchmarkReport& times = report.benchmark();
  if (times.median_us() > 0 && times.has_launch_us() &&
      times.median_us() < kLaunchShare * times.launch_us()) {
    return Regime::kLaunch;
  }
  return ParseRegime(times.floor_bound()).value_or(Regime::kUnknown);
}

std::string GuidanceDocument::id() const { return absl::StrCat(name, "@", version); }

absl::StatusOr<GuidanceDocument> ParseGuidanceDocument(std::string_view text,
                                                       const std::string& path) {
  std::istringstream input{std::string(text)};
  std::string line;
  if (!std::getline(input, line) || line != kFence) {
    return Wrong(path, 1, "a guidance document starts with a line '---'");
  }
  std::string front;
  bool closed = false;
  while (std::getline(input, line)) {
    if (line == kFence) {
      closed = true;
      break;
    }
    front += line + "\n";
  }
  if (!closed) return Wrong(path, 1, "the front matter is not closed by a line '---'");
  GuidanceDocument document;
  try {
    YAML::Node root = YAML::Load(front);
    if (!root.IsMap()) return Wrong(path, 2, "the front matter must be a mapping");
    for (const auto& entry : root) {
      KMOSAIC_RETURN_IF_ERROR(ReadKey(entry.first.Scalar(), entry.second, path, &document));
    }
  } catch (const YAML::Exception& error) {
    return Wrong(path, error.mark.line + 2, error.msg);
  }
  if (document.name.empty()) return Wrong(path, 2, "name is missing");
  if (document.stages.empty()) return Wrong(path, 2, "stages is missing or empty");
  std::ostringstream body;
  body << input.rdbuf();
  document.text = body.str();
  size_t first = document.text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return Wrong(path, 2, "the document has no text");
  size_t last = document.text.find_last_not_of(" \t\r\n");
  document.text = document.text.substr(first, last - first + 1) + "\n";
  static const RE2 kFenceWords("(?m)^(```\\w+) .*$");
  RE2::GlobalReplace(&document.text, kFenceWords, "\\1");
  return document;
}

GuidanceLibrary::GuidanceLibrary(std::vector<GuidanceDocument> documents)
    : documents_(std::move(documents)) {
  std::sort(documents_.begin(), documents_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

absl::StatusOr<GuidanceLibrary> GuidanceLibrary::Load(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat("guidance folder ", folder, ": ", error.message(),
                                            "; name another with --guidance-dir"));
  }
  std::vector<GuidanceDocument> documents;
  std::set<std::string> names;
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".md") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return absl::UnavailableError(absl::StrCat("cannot read ", entry.path().string()));
    KMOSAIC_ASSIGN_OR_RETURN(GuidanceDocument document,
                             ParseGuidanceDocument(text.str(), entry.path().string()));
    if (!names.insert(document.name).second) {
      return absl::AlreadyExistsError(
          absl::StrCat(entry.path().string(), ": another document is named ", document.name));
    }
    documents.push_back(std::move(document));
  }
  return GuidanceLibrary(std::move(documents));
}

const GuidanceDocument* GuidanceLibrary::Find(std::string_view id) const {
  for (const GuidanceDocument& document : documents_) {
    if (document.id() == id) return &document;
  }
  return nullptr;
}

const GuidanceDocument* GuidanceLibrary::FindByName(std::string_view name) const {
  for (const GuidanceDocument& document : documents_) {
    if (document.name == name) return &document;
  }
  return nullptr;
}

std::vector<const GuidanceDocument*> GuidanceLibrary::Fitting(v1::Contract contract,
                                                              v1::DeviceKind device) const {
  std::vector<const GuidanceDocument*> fitting;
  for (const GuidanceDocument& document : documents_) {
    if (FitsContract(document, contract) && FitsDevice(document, device)) {
      fitting.push_back(&document);
    }
  }
  return fitting;
}

std::vector<const GuidanceDocument*> GuidanceLibrary::Pick(const GuidanceQuery& query) const {
  std::vector<std::pair<int, const GuidanceDocument*>> fitting;
  for (const GuidanceDocument& document : documents_) {
    if (Contains(query.present, document.id())) continue;
    std::optional<int> rank = Rank(document, query);
    if (rank) fitting.emplace_back(*rank, &document);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const GuidanceDocument*> picked;
  uint64_t left = query.token_budget;
  for (const auto& [rank, document] : fitting) {
    uint64_t tokens = EstimateTokens(document->text);
    if (tokens > left) continue;
    left -= tokens;
    picked.push_back(document);
  }
  return picked;
}

}  // namespace kmosaic
