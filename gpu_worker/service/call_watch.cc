#include "gpu_worker/service/call_watch.h"

#include <chrono>
#include <utility>

namespace kmosaic {
namespace {

constexpr std::chrono::milliseconds kInterval(50);

}  // namespace

CallWatch::CallWatch() : thread_([this] { Run(); }) {}

CallWatch::~CallWatch() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CallWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // Nothing to do without calls.
    if (calls_.empty()) {
      changed_.wait(lock, [this] { return stopping_ || !calls_.empty(); });
      continue;
    }
    for (auto& [is_cancelled, cancellation] : calls_) {
      if (is_cancelled()) cancellation->Cancel();
    }
    changed_.wait_for(lock, kInterval, [this] { return stopping_; });
  }
}

CallWatch::Guard::Guard(CallWatch* watch, std::function<bool()> is_cancelled,
                        Cancellation* cancellation)
    : watch_(watch) {
  {
    std::lock_guard lock(watch_->mutex_);
    watch_->calls_.emplace_front(std::move(is_cancelled), cancellation);
    entry_ = watch_->calls_.begin();
  }
  watch_->changed_.notify_all();
}

CallWatch::Guard::~Guard() {
  std::lock_guard lock(watch_->mutex_);
  watch_->calls_.erase(entry_);
}

}  // namespace kmosaic
