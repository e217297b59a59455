#include "coordinator/queue/subscriptions.h"

#include <utility>
#include <vector>

namespace kmosaic {

class Subscriptions::Handle : public TaskQueue::Subscription {
 public:
  Handle(Subscriptions& owner, std::string job, std::shared_ptr<Listener> listener)
      : owner_(owner), job_(std::move(job)), listener_(std::move(listener)) {}

  ~Handle() override {
    {
      std::lock_guard lock(owner_.mutex_);
      auto [begin, end] = owner_.listeners_.equal_range(job_);
      for (auto each = begin; each != end; ++each) {
        if (each->second != listener_) continue;
        owner_.listeners_.erase(each);
        break;
      }
    }
    std::lock_guard lock(listener_->mutex);
    listener_->on_event = nullptr;
  }

 private:
  Subscriptions& owner_;
  const std::string job_;
  const std::shared_ptr<Listener> listener_;
};

std::unique_ptr<TaskQueue::Subscription> Subscriptions::Add(const std::string& job,
                                                            std::function<void()> on_event) {
  auto listener = std::make_shared<Listener>();
  {
    std::lock_guard lock(listener->mutex);
    listener->on_event = std::move(on_event);
  }
  {
    std::lock_guard lock(mutex_);
    listeners_.emplace(job, listener);
  }
  return std::make_unique<Handle>(*this, job, std::move(listener));
}

void Subscriptions::Notify(const std::string& job) {
  std::vector<std::shared_ptr<Listener>> called;
  {
    std::lock_guard lock(mutex_);
    auto [begin, end] = listeners_.equal_range(job);
    for (auto each = begin; each != end; ++each) called.push_back(each->second);
  }
  for (const auto& listener : called) {
    std::lock_guard lock(listener->mutex);
    if (listener->on_event) listener->on_event();
  }
}

}  // namespace kmosaic
