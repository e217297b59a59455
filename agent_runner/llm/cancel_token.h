// Lets one thread call off what another one waits for.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_CANCEL_TOKEN_H_
#define KMOSAIC_AGENT_RUNNER_LLM_CANCEL_TOKEN_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "absl/time/time.h"

namespace kmosaic {

// Thread-safe. Cancelled once, for good.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  // Runs the callbacks that are registered, on this thread, before it returns.
  void Cancel();
  bool cancelled() const;

  // Sleeps for `duration`, or shorter when cancelled; returns whether it was cancelled.
  bool WaitFor(absl::Duration duration) const;

  // Has `callback` run when the token is cancelled, at once if it already is. The
  // callback must not touch the token. Once the registration is gone the callback
  // neither runs nor is running.
  class Registration {
   public:
    Registration(CancelToken& token, std::function<void()> callback);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    CancelToken& token_;
    uint64_t id_ = 0;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool cancelled_ = false;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::function<void()>> callbacks_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_CANCEL_TOKEN_H_
