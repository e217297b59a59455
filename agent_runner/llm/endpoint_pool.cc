#include "agent_runner/llm/endpoint_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent_runner/llm/http_endpoint.h"
#include "agent_runner/llm/replay_endpoint.h"
#include "common/base/digest.h"
#include "common/base/status.h"

namespace kmosaic {

EndpointPool::EndpointPool(const Clock& clock, LlmClient::Options options, Observer observer)
    : clock_(clock), options_(std::move(options)), observer_(std::move(observer)) {}

absl::StatusOr<std::shared_ptr<LlmClient>> EndpointPool::Get(const v1::Endpoint& endpoint) {
  std::string key = Sha256Hex(endpoint.SerializeAsString());
  std::lock_guard lock(mutex_);
  std::erase_if(clients_, [](const auto& entry) { return entry.second.expired(); });
  if (auto found = clients_.find(key); found != clients_.end()) {
    if (auto client = found->second.lock()) return client;
  }
  std::unique_ptr<LlmEndpoint> made;
  switch (endpoint.kind()) {
    case v1::ENDPOINT_KIND_REPLAY: {
      KMOSAIC_ASSIGN_OR_RETURN(made, ReplayEndpoint::Make(endpoint));
      break;
    }
    case v1::ENDPOINT_KIND_OPENAI:
      made = std::make_unique<OpenAiEndpoint>(endpoint, clock_);
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("endpoint '", endpoint.name(), "' is of kind ", endpoint.kind(),
                       ", which this runner does not know; it knows replay and openai"));
  }
  LlmClient::Options options = options_;
  options.max_concurrency = endpoint.max_concurrency();
  if (observer_) {
    v1::Endpoint named = endpoint;
    named.clear_recordings();
    options.observer = [observer = observer_, named](const std::string& outcome,
                                                     const v1::ModelReply* reply) {
      observer(named, outcome, reply);
    };
  }
  auto client = std::make_shared<LlmClient>(std::move(made), clock_, std::move(options));
  clients_[key] = client;
  return client;
}

}  // namespace kmosaic
