// A job's endpoints as its conversations use them: one for each, retries, others when it
// fails.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_LLM_CLIENT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_LLM_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent_runner/llm/endpoint_gate.h"
#include "agent_runner/llm/llm_endpoint.h"
#include "common/base/clock.h"

namespace kmosaic {

// One endpoint; shared by all jobs of the process that name it.
struct LlmRoute {
  std::string name;
  // Share of the conversations; at least 1.
  uint32_t weight = 1;
  std::shared_ptr<LlmEndpoint> endpoint;
  std::shared_ptr<EndpointGate> gate;
  // Called after each try, with the reply or null and the error's name ("ok" without
  // one); from any thread.
  std::function<void(const std::string& outcome, const v1::ModelReply* reply)> observer;
};

// Thread-safe.
class LlmClient {
 public:
  struct Options {
    // How long one Complete goes on trying after its first failure.
    absl::Duration patience = absl::Minutes(2);
    // Of the back-off with full jitter between tries where the server names no time.
    absl::Duration backoff_base = absl::Milliseconds(500);
    absl::Duration backoff_cap = absl::Seconds(20);
    // Calls that broke off after the server had begun to work, or whose reply made no
    // sense, may have been paid for: at most this many tries of one Complete.
    int tries_that_may_cost = 3;
  };

  // `routes` is not empty; `clock` must outlive the client.
  LlmClient(std::vector<LlmRoute> routes, const Clock& clock, const Options& options);

  // Waits for its turn, calls, and tries again while that may help. A conversation keeps to
  // its own endpoint; while that is held back, or when it refuses for good, the next one in
  // the conversation's order is asked. An error that is retryable comes back with the time
  // to wait in retry_after: the caller may give up its place and come again. No try is made
  // before a time that the server named. `cancel` ends the call in flight too; once
  // `no_new_tries` is cancelled only a try that has begun goes on to its end. Either gives
  // kCancelled.
  LlmResult Complete(const LlmRequest& request, CancelToken& cancel, CancelToken& no_new_tries);

 private:
  const std::vector<LlmRoute> routes_;
  const Clock& clock_;
  const Options options_;
};

// Positions of `routes` in the order in which this conversation asks them: drawn by weight,
// always the same for the same conversation and names. Exposed for tests.
std::vector<size_t> RouteOrder(const std::vector<LlmRoute>& routes, const LlmRequest& request);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_LLM_CLIENT_H_
