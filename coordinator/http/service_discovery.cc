#include "coordinator/http/service_discovery.h"

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/enum_names.h"
#include "common/base/text.h"
#include "common/base/version.h"

namespace kmosaic {
namespace {

using Labels = std::map<std::string, std::string>;

// "WORKER_STATE_BUSY" -> "busy".
std::string StateName(v1::WorkerState state) {
  constexpr char kPrefix[] = "WORKER_STATE_";
  return absl::AsciiStrToLower(v1::WorkerState_Name(state).substr(sizeof(kPrefix) - 1));
}

std::string LabelName(const std::string& name) {
  std::string result = "__meta_kmosaic_label_";
  for (char c : name) result += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return result;
}

nlohmann::json Target(const std::string& address, const std::string& process, Labels labels) {
  labels["__meta_kmosaic_process"] = process;
  nlohmann::json texts = nlohmann::json::object();
  for (const auto& [name, value] : labels) texts[name] = ToValidUtf8(value);
  return {{"targets", {ToValidUtf8(address)}}, {"labels", std::move(texts)}};
}

}  // namespace

std::string ServiceDiscoveryJson(const std::string& coordinator,
                                 const std::vector<v1::Worker>& workers,
                                 const std::vector<v1::Runner>& runners) {
  nlohmann::json list = nlohmann::json::array();
  list.push_back(Target(coordinator, "coordinator",
                        {{"__meta_kmosaic_id", "coordinator"},
                         {"__meta_kmosaic_version", kVersion},
                         {"__meta_kmosaic_state", "ready"}}));
  for (const v1::Worker& worker : workers) {
    if (worker.state() == v1::WORKER_STATE_LOST || worker.http_endpoint().empty()) continue;
    Labels labels;
    for (const auto& [name, value] : worker.labels()) labels[LabelName(name)] = value;
    labels["__meta_kmosaic_id"] = worker.id();
    labels["__meta_kmosaic_version"] = worker.version();
    labels["__meta_kmosaic_state"] = StateName(worker.state());
    labels["__meta_kmosaic_device"] = DeviceName(worker.device().kind());
    list.push_back(Target(worker.http_endpoint(), "gpu-worker", std::move(labels)));
  }
  for (const v1::Runner& runner : runners) {
    if (runner.http_endpoint().empty()) continue;
    list.push_back(Target(runner.http_endpoint(), "agent-runner",
                          {{"__meta_kmosaic_id", runner.id()},
                           {"__meta_kmosaic_version", runner.version()},
                           {"__meta_kmosaic_state", runner.draining() ? "draining" : "ready"}}));
  }
  return list.dump();
}

}  // namespace kmosaic
