#include "gpu_worker/service/health_keeper.h"

#include <utility>

namespace kmosaic {

HealthKeeper::HealthKeeper(Options options)
    : options_(std::move(options)), monitor_(options_.monitor) {}

HealthKeeper::~HealthKeeper() { Stop(); }

void HealthKeeper::Start() {
  thread_ = std::thread([this] { Run(); });
}

void HealthKeeper::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  cancellation_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void HealthKeeper::OnEvaluation(const std::optional<std::string>& failure) {
  {
    std::lock_guard lock(mutex_);
    monitor_.OnEvaluation(failure, options_.clock->Steady());
  }
  changed_.notify_all();
}

bool HealthKeeper::well() const {
  std::lock_guard lock(mutex_);
  return monitor_.well();
}

std::string HealthKeeper::reason() const {
  std::lock_guard lock(mutex_);
  return monitor_.reason();
}

void HealthKeeper::Run() {
  bool told_well = true;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (monitor_.well() != told_well) {
      told_well = monitor_.well();
      std::string reason = monitor_.reason();
      lock.unlock();
      options_.on_change(told_well, reason);
      lock.lock();
      continue;
    }
    if (monitor_.well()) {
      changed_.wait(lock);
      continue;
    }
    absl::Duration left = monitor_.test_at() - options_.clock->Steady();
    if (left > absl::ZeroDuration()) {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(left));
      continue;
    }
    lock.unlock();
    absl::Status result = options_.self_test(&cancellation_);
    lock.lock();
    if (!stopping_) monitor_.OnSelfTest(result, options_.clock->Steady());
  }
}

}  // namespace kmosaic
