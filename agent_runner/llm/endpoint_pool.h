// Endpoints by what they are, so that all conversations with one share its limits.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_POOL_H_
#define KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_POOL_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent_runner/llm/http_endpoint.h"
#include "agent_runner/llm/llm_client.h"

namespace kmosaic {

// Thread-safe.
class EndpointPool {
 public:
  struct Options {
    LlmClient::Options calls;
    HttpEndpoint::Options http;
  };
  using Observer = std::function<void(const v1::Endpoint& endpoint, const std::string& outcome,
                                      const v1::ModelReply* reply)>;
  // `clock` must outlive the pool. Limits hold for this process alone until ShareLimits.
  EndpointPool(const Clock& clock, Options options, Observer observer);

  // A client of the job's endpoints; an endpoint is made when nobody holds it.
  // INVALID_ARGUMENT for a recording that cannot be read or an endpoint of no known kind.
  absl::StatusOr<std::shared_ptr<LlmClient>> Get(const v1::JobSpec& job);

  // From now on the limits of servers hold for several processes; `on_wait` as for
  // EndpointGate. Before the first Get.
  void ShareLimits(std::function<void()> on_wait);
  struct SharedGate {
    // "URL MODEL": endpoints of which both are the same are one.
    std::string endpoint;
    std::shared_ptr<EndpointGate> gate;
  };
  // Those that somebody holds.
  std::vector<SharedGate> SharedGates();

 private:
  absl::StatusOr<LlmRoute> RouteTo(const v1::Endpoint& endpoint);
  absl::StatusOr<std::shared_ptr<LlmEndpoint>> Make(const v1::Endpoint& endpoint) const;
  std::shared_ptr<EndpointGate> GateOf(const v1::Endpoint& endpoint, const std::string& digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const Options options_;
  const Observer observer_;
  std::mutex mutex_;
  std::function<void()> on_wait_ ABSL_GUARDED_BY(mutex_);
  // By the endpoint's content.
  std::map<std::string, std::weak_ptr<LlmEndpoint>> endpoints_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::weak_ptr<EndpointGate>> gates_ ABSL_GUARDED_BY(mutex_);
  // Kept for good, for their counts never fall.
  std::map<std::string, std::shared_ptr<EndpointGate>> shared_gates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_POOL_H_
