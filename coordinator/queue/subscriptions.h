// Who wants to hear of new events of which job.
#ifndef KMOSAIC_COORDINATOR_QUEUE_SUBSCRIPTIONS_H_
#define KMOSAIC_COORDINATOR_QUEUE_SUBSCRIPTIONS_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "coordinator/queue/task_queue.h"

namespace kmosaic {

// Thread-safe; must outlive what Add returned.
class Subscriptions {
 public:
  // Once the returned object is destroyed `on_event` is not running and never runs again;
  // so it must not be destroyed from within `on_event`.
  std::unique_ptr<TaskQueue::Subscription> Add(const std::string& job,
                                               std::function<void()> on_event);
  void Notify(const std::string& job);

 private:
  struct Listener {
    std::mutex mutex;
    std::function<void()> on_event ABSL_GUARDED_BY(mutex);
  };
  class Handle;

  std::mutex mutex_;
  std::multimap<std::string, std::shared_ptr<Listener>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_SUBSCRIPTIONS_H_
