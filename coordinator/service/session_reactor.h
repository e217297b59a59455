// One open Session of a runner.
#ifndef KMOSAIC_COORDINATOR_SERVICE_SESSION_REACTOR_H_
#define KMOSAIC_COORDINATOR_SERVICE_SESSION_REACTOR_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "coordinator/queue/task_queue.h"
#include "kernelmosaic/v1/runner.grpc.pb.h"

namespace kmosaic {

// Deletes itself when the call is done. Reads on while messages are worked at, up to a
// bound; writes answers one after the other. Holds no thread.
//
// Ends when the runner has closed its side and everything is answered, or when the stream
// breaks. Leases in answers that could not be written are handed back then.
class SessionReactor : public grpc::ServerBidiReactor<v1::SessionRequest, v1::SessionResponse> {
 public:
  // `queue` must outlive the call.
  explicit SessionReactor(TaskQueue& queue);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  void Answer(absl::StatusOr<v1::SessionResponse> response, bool last);
  static void HandBack(TaskQueue& queue, const v1::SessionResponse& response);
  // These start what can be started now. At most one caller comes to Finish.
  void ReadOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TaskQueue& queue_;
  const std::shared_ptr<QueueSession> session_;
  // Of the read in progress.
  v1::SessionRequest request_;

  std::mutex mutex_;
  // Answers that wait, the first of them being written when `writing_`.
  std::deque<v1::SessionResponse> answers_ ABSL_GUARDED_BY(mutex_);
  // Messages that are not answered for the last time.
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A message was read and is not in the queue yet.
  bool posting_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_SESSION_REACTOR_H_
