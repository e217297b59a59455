// Takes slots back from runners that are gone: a slot is held by a lease, and ends with it.
#ifndef KMOSAIC_COORDINATOR_SERVICE_LEASE_SLOTS_H_
#define KMOSAIC_COORDINATOR_SERVICE_LEASE_SLOTS_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "coordinator/placement/placement.h"
#include "coordinator/queue/task_queue.h"

namespace kmosaic {

// Thread-safe.
class LeaseSlots {
 public:
  // Both must outlive it, and `placement` the queue too: its late answers reach placement.
  // Leases that have asked for slots are looked at this often.
  LeaseSlots(TaskQueue& queue, Placement& placement, absl::Duration interval = absl::Seconds(2));
  ~LeaseSlots();
  LeaseSlots(const LeaseSlots&) = delete;
  LeaseSlots& operator=(const LeaseSlots&) = delete;

  // The name under which the lease holds slots (SlotRequest.holder). From now on, and until
  // the lease has ended, it is looked at; then all its slots are freed.
  std::string Watch(const v1::LeaseToken& token);

 private:
  // The queue's answers may reach it when the rest is gone.
  struct Shared {
    std::mutex mutex;
    std::map<std::string, v1::LeaseToken> watched ABSL_GUARDED_BY(mutex);
  };

  void Run();
  void Check();

  TaskQueue& queue_;
  Placement& placement_;
  const absl::Duration interval_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_LEASE_SLOTS_H_
