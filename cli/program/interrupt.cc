#include "cli/program/interrupt.h"

#include <utility>

namespace kmosaic {

void Interrupt::Trigger() {
  std::lock_guard lock(mutex_);
  triggered_ = true;
  changed_.notify_all();
  for (const auto& [key, callback] : callbacks_) callback();
}

bool Interrupt::triggered() const {
  std::lock_guard lock(mutex_);
  return triggered_;
}

bool Interrupt::WaitFor(absl::Duration duration) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(duration),
                           [this] { return triggered_; });
}

Interrupt::Scope::Scope(Interrupt& interrupt, std::function<void()> callback)
    : interrupt_(interrupt) {
  std::lock_guard lock(interrupt_.mutex_);
  key_ = interrupt_.next_key_++;
  if (interrupt_.triggered_) callback();
  interrupt_.callbacks_[key_] = std::move(callback);
}

Interrupt::Scope::~Scope() {
  std::lock_guard lock(interrupt_.mutex_);
  interrupt_.callbacks_.erase(key_);
}

}  // namespace kmosaic
