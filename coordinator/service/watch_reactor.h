// One open Watch: sends a job's durable events, then follows what comes.
#ifndef KMOSAIC_COORDINATOR_SERVICE_WATCH_REACTOR_H_
#define KMOSAIC_COORDINATOR_SERVICE_WATCH_REACTOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "coordinator/queue/task_queue.h"
#include "coordinator/service/serial_executor.h"
#include "kernelmosaic/v1/job.grpc.pb.h"

namespace kmosaic {

// Deletes itself when the call is done. Holds no thread while nothing happens: at any time
// either a read, a write or nothing is in progress, and the queue's notification starts
// the next read when it was nothing.
class WatchReactor : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  // `queue` and `executor` must outlive the call.
  WatchReactor(TaskQueue& queue, SerialExecutor& executor, const std::string& job,
               uint64_t from_seq);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void OnEvent();
  // Reads on until there is something to write, or to wait for.
  void Pump();
  void WriteNext();

  TaskQueue& queue_;
  SerialExecutor& executor_;
  const std::string job_;

  // Of whoever is at work; nobody is when it is idle.
  uint64_t next_seq_;
  std::deque<v1::JobEvent> pending_;
  bool last_page_ = false;

  std::mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<TaskQueue::Subscription> subscription_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_WATCH_REACTOR_H_
