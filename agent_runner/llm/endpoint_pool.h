// Clients by endpoint, so that all conversations with one endpoint share its limits.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_POOL_H_
#define KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_POOL_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent_runner/llm/llm_client.h"

namespace kmosaic {

// Thread-safe.
class EndpointPool {
 public:
  // Options of the clients; max_concurrency and observer are set per endpoint.
  using Observer = std::function<void(const v1::Endpoint& endpoint, const std::string& outcome,
                                      const v1::ModelReply* reply)>;
  EndpointPool(const Clock& clock, LlmClient::Options options, Observer observer);

  // The client of this endpoint; made when nobody holds one. INVALID_ARGUMENT for a
  // recording that cannot be read or an endpoint of no known kind.
  absl::StatusOr<std::shared_ptr<LlmClient>> Get(const v1::Endpoint& endpoint);

 private:
  const Clock& clock_;
  const LlmClient::Options options_;
  const Observer observer_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<LlmClient>> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_POOL_H_
