// One endpoint as all conversations of this process share it: a limit on calls in
// flight, one "not before" for all, retries.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_LLM_CLIENT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_LLM_CLIENT_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "agent_runner/llm/llm_endpoint.h"
#include "common/base/clock.h"

namespace kmosaic {

// Thread-safe.
class LlmClient {
 public:
  struct Options {
    // Most calls in flight; 0 = no limit.
    uint32_t max_concurrency = 0;
    // How long one Complete goes on trying after its first failure.
    absl::Duration patience = absl::Minutes(2);
    // Of the back-off with full jitter between tries where the server names no time.
    absl::Duration backoff_base = absl::Milliseconds(500);
    absl::Duration backoff_cap = absl::Seconds(20);
    // Calls that broke off after the server had begun to work, or whose reply made no
    // sense, may have been paid for: at most this many tries of one Complete.
    int tries_that_may_cost = 3;
    // Called after each try, with the reply or null and the error's name ("ok" without
    // one); from any thread.
    std::function<void(const std::string& outcome, const v1::ModelReply* reply)> observer;
  };

  // `clock` must outlive the client.
  LlmClient(std::unique_ptr<LlmEndpoint> endpoint, const Clock& clock, Options options);

  // Waits for its turn, calls, and tries again while that may help. An error that is
  // retryable comes back with the time to wait in retry_after: the caller may give up its
  // place and come again. No try is made before a time that the server named. `cancel`
  // ends the call in flight too; once `no_new_tries` is cancelled only a try that has
  // begun goes on to its end. Either gives kCancelled.
  LlmResult Complete(const LlmRequest& request, CancelToken& cancel, CancelToken& no_new_tries);

 private:
  // kHeldBack with the time to `wait` when the endpoint wants more patience than `until`
  // (steady time) allows.
  enum class Entry { kEntered, kCancelled, kHeldBack };
  Entry Enter(CancelToken& no_new_tries, absl::Duration until, absl::Duration* wait);
  void Leave();
  void HoldBack(absl::Duration delay);

  const std::unique_ptr<LlmEndpoint> endpoint_;
  const Clock& clock_;
  const Options options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  // Steady time before which no call is made.
  absl::Duration not_before_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_LLM_CLIENT_H_
