#include "agent_runner/llm/endpoint_gate.h"

#include <algorithm>
#include <utility>

namespace kmosaic {
namespace {

constexpr absl::Duration kLongestHold = absl::Hours(1);
// The token has a lock of its own and wakes without ours: look again now and then.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);
// How long a share may be missed before waiting is given up, and when to come again then.
constexpr absl::Duration kWithoutShare = absl::Seconds(15);

template <typename T>
T Smaller(T a, T b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

EndpointLimit Strictest(const EndpointLimit& a, const EndpointLimit& b) {
  return {Smaller(a.max_concurrency, b.max_concurrency),
          Smaller(a.requests_per_minute, b.requests_per_minute),
          Smaller(a.tokens_per_minute, b.tokens_per_minute)};
}

EndpointGate::EndpointGate(const Clock& clock, const EndpointLimit& limit)
    : clock_(clock), shared_(false), limit_(limit) {}

EndpointGate::EndpointGate(const Clock& clock, const EndpointLimit& limit,
                           std::function<void()> on_wait)
    : clock_(clock), shared_(true), on_wait_(std::move(on_wait)), limit_(limit) {}

bool EndpointGate::MayBegin(absl::Duration now) const {
  if (now < not_before_) return false;
  if (!shared_) return limit_.max_concurrency == 0 || in_flight_ < limit_.max_concurrency;
  return now < share_.until && in_flight_ < share_.slots && started_ < share_.may_start;
}

EndpointGate::Entry EndpointGate::Enter(CancelToken& cancel, absl::Duration until,
                                        absl::Duration* wait) {
  CancelToken::Registration wake(cancel, [this] { changed_.notify_all(); });
  std::unique_lock lock(mutex_);
  bool waits = false;
  auto end = [&](Entry entry) {
    if (waits) --waiting_;
    return entry;
  };
  while (true) {
    if (cancel.cancelled()) return end(Entry::kCancelled);
    absl::Duration now = clock_.Steady();
    if (not_before_ > until) {
      *wait = not_before_ - now;
      return end(Entry::kHeldBack);
    }
    if (MayBegin(now)) {
      ++in_flight_;
      ++started_;
      return end(Entry::kEntered);
    }
    // The coordinator, which gives shares, is away.
    if (shared_ && now >= until && now - share_.until >= kWithoutShare) {
      *wait = kWithoutShare;
      return end(Entry::kHeldBack);
    }
    if (!std::exchange(waits, true)) {
      ++waiting_;
      if (shared_ && on_wait_) {
        lock.unlock();
        on_wait_();
        lock.lock();
        continue;
      }
    }
    absl::Duration sleep = kLongestSleep;
    if (now < not_before_) sleep = std::min(sleep, not_before_ - now);
    changed_.wait_for(lock, absl::ToChronoMicroseconds(sleep));
  }
}

void EndpointGate::Leave(uint64_t tokens) {
  std::lock_guard lock(mutex_);
  --in_flight_;
  tokens_ += tokens;
  changed_.notify_one();
}

void EndpointGate::HoldBack(absl::Duration delay) {
  std::lock_guard lock(mutex_);
  not_before_ = std::max(not_before_, clock_.Steady() + std::min(delay, kLongestHold));
}

absl::Duration EndpointGate::OpensIn() {
  std::lock_guard lock(mutex_);
  return std::max(not_before_ - clock_.Steady(), absl::ZeroDuration());
}

void EndpointGate::Hear(const Share& share) {
  std::lock_guard lock(mutex_);
  share_ = share;
  changed_.notify_all();
}

EndpointGate::Use EndpointGate::use() {
  std::lock_guard lock(mutex_);
  uint32_t slots = clock_.Steady() < share_.until ? share_.slots : 0;
  return {limit_, in_flight_, waiting_, slots, started_, tokens_};
}

void EndpointGate::SetLimit(const EndpointLimit& limit) {
  std::lock_guard lock(mutex_);
  limit_ = limit;
}

}  // namespace kmosaic
