#include "agent_runner/llm/endpoint_pool.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent_runner/llm/replay_endpoint.h"
#include "common/base/digest.h"
#include "common/base/status.h"

namespace kmosaic {

EndpointPool::EndpointPool(const Clock& clock, Options options, Observer observer)
    : clock_(clock), options_(std::move(options)), observer_(std::move(observer)) {}

absl::StatusOr<std::shared_ptr<LlmClient>> EndpointPool::Get(const v1::JobSpec& job) {
  std::vector<LlmRoute> routes(1);
  KMOSAIC_ASSIGN_OR_RETURN(routes[0], RouteTo(job.endpoint()));
  for (const v1::Endpoint& endpoint : job.further_endpoints()) {
    KMOSAIC_ASSIGN_OR_RETURN(LlmRoute route, RouteTo(endpoint));
    routes.push_back(std::move(route));
  }
  return std::make_shared<LlmClient>(std::move(routes), clock_, options_.calls);
}

absl::StatusOr<LlmRoute> EndpointPool::RouteTo(const v1::Endpoint& endpoint) {
  LlmRoute route;
  route.name = endpoint.name();
  route.weight = endpoint.weight() == 0 ? 1 : endpoint.weight();
  if (observer_) {
    v1::Endpoint named = endpoint;
    named.clear_recordings();
    route.observer = [observer = observer_, named](const std::string& outcome,
                                                   const v1::ModelReply* reply) {
      observer(named, outcome, reply);
    };
  }
  v1::Endpoint weightless = endpoint;
  weightless.clear_weight();
  const std::string digest = Sha256Hex(weightless.SerializeAsString());
  std::lock_guard lock(mutex_);
  std::erase_if(endpoints_, [](const auto& entry) { return entry.second.expired(); });
  if (auto found = endpoints_.find(digest); found != endpoints_.end()) {
    route.endpoint = found->second.lock();
  }
  if (route.endpoint == nullptr) {
    KMOSAIC_ASSIGN_OR_RETURN(route.endpoint, Make(endpoint));
    endpoints_[digest] = route.endpoint;
  }
  route.gate = GateOf(endpoint, digest);
  return route;
}

std::shared_ptr<EndpointGate> EndpointPool::GateOf(const v1::Endpoint& endpoint,
                                                   const std::string& digest) {
  EndpointLimit limit{endpoint.max_concurrency(), endpoint.requests_per_minute(),
                      endpoint.tokens_per_minute()};
  bool shared = on_wait_ && limit.any() && endpoint.kind() != v1::ENDPOINT_KIND_REPLAY;
  if (shared) {
    std::shared_ptr<EndpointGate>& gate =
        shared_gates_[absl::StrCat(endpoint.url(), " ", endpoint.model())];
    if (gate == nullptr) {
      gate = std::make_shared<EndpointGate>(clock_, limit, on_wait_);
    } else if (gate.use_count() > 1) {
      gate->SetLimit(Strictest(limit, gate->use().limit));
    } else {
      gate->SetLimit(limit);
    }
    return gate;
  }
  std::erase_if(gates_, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<EndpointGate> gate = gates_[digest].lock();
  if (gate == nullptr) {
    gate = std::make_shared<EndpointGate>(clock_, limit);
    gates_[digest] = gate;
  }
  return gate;
}

void EndpointPool::ShareLimits(std::function<void()> on_wait) {
  std::lock_guard lock(mutex_);
  on_wait_ = std::move(on_wait);
}

std::vector<EndpointPool::SharedGate> EndpointPool::SharedGates() {
  std::lock_guard lock(mutex_);
  std::vector<SharedGate> gates;
  for (const auto& [endpoint, gate] : shared_gates_) {
    if (gate.use_count() > 1) gates.push_back({endpoint, gate});
  }
  return gates;
}

absl::StatusOr<std::shared_ptr<LlmEndpoint>> EndpointPool::Make(
    const v1::Endpoint& endpoint) const {
  switch (endpoint.kind()) {
    case v1::ENDPOINT_KIND_REPLAY:
      return ReplayEndpoint::Make(endpoint);
    case v1::ENDPOINT_KIND_OPENAI:
      return std::make_shared<HttpEndpoint>(endpoint, std::make_unique<OpenAiProtocol>(), clock_,
                                            options_.http);
    case v1::ENDPOINT_KIND_ANTHROPIC:
      return std::make_shared<HttpEndpoint>(endpoint, std::make_unique<AnthropicProtocol>(), clock_,
                                            options_.http);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("endpoint '", endpoint.name(), "' is of kind ", endpoint.kind(),
                       ", which this runner does not know; it knows replay, openai and anthropic"));
  }
}

}  // namespace kmosaic
