// Who may call an endpoint now: one for all conversations of a process.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_GATE_H_
#define KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_GATE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "agent_runner/llm/cancel_token.h"
#include "common/base/clock.h"

namespace kmosaic {

// Limits of an endpoint as a job states them; 0: none.
struct EndpointLimit {
  uint32_t max_concurrency = 0;
  uint32_t requests_per_minute = 0;
  uint64_t tokens_per_minute = 0;

  bool any() const {
    return max_concurrency > 0 || requests_per_minute > 0 || tokens_per_minute > 0;
  }
};

// Of each limit the smaller one; 0 counts as none.
EndpointLimit Strictest(const EndpointLimit& a, const EndpointLimit& b);

// Thread-safe.
class EndpointGate {
 public:
  // Limits that hold for this gate alone, of which it only knows max_concurrency. `clock`
  // must outlive the gate.
  EndpointGate(const Clock& clock, const EndpointLimit& limit);
  // Limits that hold for several processes: calls begin within the shares that Hear brings,
  // and `on_wait` is called, from any thread, when one begins to wait.
  EndpointGate(const Clock& clock, const EndpointLimit& limit, std::function<void()> on_wait);

  enum class Entry {
    kEntered,
    kCancelled,
    // The endpoint stays closed beyond what the caller would wait for.
    kHeldBack,
  };
  // Waits for a place. Whoever has entered must Leave. kHeldBack, with the time to `wait`,
  // when no call is allowed up to `until` (steady time), or when no share has been good for a
  // while after it.
  Entry Enter(CancelToken& cancel, absl::Duration until, absl::Duration* wait);
  // `tokens` of prompt and completion were used; 0 where that is not known.
  void Leave(uint64_t tokens);

  // No call begins before this has passed; an hour at most, then the endpoint is asked again.
  void HoldBack(absl::Duration delay);
  // How long until calls may begin; zero when they may.
  absl::Duration OpensIn();

  // The rest is for shared limits.
  struct Share {
    // Calls in flight, and the number of calls begun below which a further one may begin.
    uint32_t slots = 0;
    uint64_t may_start = 0;
    // Steady time at which it runs out.
    absl::Duration until;
  };
  void Hear(const Share& share);
  // What this process does now; `started` and `tokens` since the gate was made.
  struct Use {
    EndpointLimit limit;
    uint32_t in_flight = 0;
    uint32_t waiting = 0;
    uint32_t slots = 0;
    uint64_t started = 0;
    uint64_t tokens = 0;
  };
  Use use();
  void SetLimit(const EndpointLimit& limit);

 private:
  bool MayBegin(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const bool shared_;
  const std::function<void()> on_wait_;
  std::mutex mutex_;
  std::condition_variable changed_;
  EndpointLimit limit_ ABSL_GUARDED_BY(mutex_);
  Share share_ ABSL_GUARDED_BY(mutex_);
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  // Steady time.
  absl::Duration not_before_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_ENDPOINT_GATE_H_
