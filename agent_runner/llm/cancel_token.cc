#include "agent_runner/llm/cancel_token.h"

#include <utility>

namespace kmosaic {

void CancelToken::Cancel() {
  // Callbacks run under the lock, so that a registration's end waits for its callback.
  std::lock_guard lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  for (auto& [id, callback] : callbacks_) callback();
  changed_.notify_all();
}

bool CancelToken::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

bool CancelToken::WaitFor(absl::Duration duration) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMicroseconds(duration),
                           [this] { return cancelled_; });
}

CancelToken::Registration::Registration(CancelToken& token, std::function<void()> callback)
    : token_(token) {
  std::lock_guard lock(token_.mutex_);
  if (token_.cancelled_) {
    callback();
    return;
  }
  id_ = token_.next_id_++;
  token_.callbacks_[id_] = std::move(callback);
}

CancelToken::Registration::~Registration() {
  std::lock_guard lock(token_.mutex_);
  token_.callbacks_.erase(id_);
}

}  // namespace kmosaic
