#include "agent_runner/llm/llm_client.h"

#include <algorithm>
#include <utility>

#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

// A server that names a longer time is asked again after this.
constexpr absl::Duration kLongestHold = absl::Hours(1);

bool MayHaveCost(LlmError::Kind kind) {
  return kind == LlmError::Kind::kTruncatedStream || kind == LlmError::Kind::kBadReply ||
         kind == LlmError::Kind::kTimeout;
}

}  // namespace

LlmClient::LlmClient(std::unique_ptr<LlmEndpoint> endpoint, const Clock& clock, Options options)
    : endpoint_(std::move(endpoint)), clock_(clock), options_(std::move(options)) {}

LlmClient::Entry LlmClient::Enter(CancelToken& no_new_tries, absl::Duration until,
                                  absl::Duration* wait) {
  CancelToken::Registration wake(no_new_tries, [this] { changed_.notify_all(); });
  std::unique_lock lock(mutex_);
  while (true) {
    // The token has a lock of its own and wakes without ours: look again now and then.
    if (no_new_tries.cancelled()) return Entry::kCancelled;
    absl::Duration now = clock_.Steady();
    if (not_before_ > until) {
      *wait = not_before_ - now;
      return Entry::kHeldBack;
    }
    bool free = options_.max_concurrency == 0 || in_flight_ < options_.max_concurrency;
    if (free && now >= not_before_) {
      ++in_flight_;
      return Entry::kEntered;
    }
    absl::Duration sleep = absl::Milliseconds(200);
    if (now < not_before_) sleep = std::min(sleep, not_before_ - now);
    changed_.wait_for(lock, absl::ToChronoMicroseconds(sleep));
  }
}

void LlmClient::Leave() {
  std::lock_guard lock(mutex_);
  --in_flight_;
  changed_.notify_one();
}

void LlmClient::HoldBack(absl::Duration delay) {
  std::lock_guard lock(mutex_);
  not_before_ = std::max(not_before_, clock_.Steady() + std::min(delay, kLongestHold));
}

LlmResult LlmClient::Complete(const LlmRequest& request, CancelToken& cancel,
                              CancelToken& no_new_tries) {
  absl::Duration give_up = clock_.Steady() + options_.patience;
  bool failed_before = false;
  int costly_tries = 0;
  for (int attempt = 0;; ++attempt) {
    absl::Duration wait;
    switch (Enter(no_new_tries, give_up, &wait)) {
      case Entry::kCancelled:
        return LlmError{LlmError::Kind::kCancelled, "called off while waiting for the endpoint"};
      case Entry::kHeldBack:
        return LlmError{LlmError::Kind::kRateLimited,
                        "the endpoint has asked for more patience than a conversation keeps", wait};
      case Entry::kEntered:
        break;
    }
    LlmResult result = endpoint_->Complete(request, cancel);
    Leave();
    if (auto* reply = std::get_if<v1::ModelReply>(&result)) {
      if (options_.observer) options_.observer("ok", reply);
      return result;
    }
    LlmError& error = std::get<LlmError>(result);
    if (options_.observer) options_.observer(LlmErrorName(error.kind), nullptr);
    if (!IsRetryable(error.kind)) return result;

    absl::Duration now = clock_.Steady();
    if (!std::exchange(failed_before, true)) give_up = now + options_.patience;
    if (error.retry_after > absl::ZeroDuration()) HoldBack(error.retry_after);
    absl::Duration delay = std::max(std::min(error.retry_after, kLongestHold),
                                    Backoff(attempt, options_.backoff_base, options_.backoff_cap));
    if (MayHaveCost(error.kind)) ++costly_tries;
    if (now + delay > give_up || costly_tries >= options_.tries_that_may_cost) {
      error.retry_after = std::max(delay, options_.backoff_cap);
      return result;
    }
    if (no_new_tries.WaitFor(delay)) {
      return LlmError{LlmError::Kind::kCancelled, "called off between two tries"};
    }
  }
}

}  // namespace kmosaic
