// Replies from a recording (docs/tasks.md): no model, no network, no cost.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_REPLAY_ENDPOINT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_REPLAY_ENDPOINT_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent_runner/llm/llm_endpoint.h"

namespace kmosaic {

class ReplayEndpoint : public LlmEndpoint {
 public:
  // INVALID_ARGUMENT naming the line and the key when `endpoint.recordings` is not a
  // recording.
  static absl::StatusOr<std::unique_ptr<ReplayEndpoint>> Make(const v1::Endpoint& endpoint);

  // The first line that fits task, views, sample and turn; kRecordingEnded where none
  // does. Usage is the recorded one; without one tokens are estimated and cost nothing.
  LlmResult Complete(const LlmRequest& request, CancelToken& cancel) override;

 private:
  struct Line {
    std::string task;
    uint32_t turn = 0;
    std::optional<std::set<v1::View>> views;
    std::optional<uint32_t> sample;
    // What is recorded of it; the content holds no reasoning any more.
    v1::ModelReply reply;
  };

  ReplayEndpoint(std::string name, std::string model, std::vector<Line> lines);
  static absl::StatusOr<Line> ParseLine(const std::string& text);
  static absl::Status ParseReply(const std::string& key, const nlohmann::json& value,
                                 v1::ModelReply* reply);

  const std::string name_;
  const std::string model_;
  const std::vector<Line> lines_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_REPLAY_ENDPOINT_H_
