#include "coordinator/service/session_reactor.h"

#include <utility>

#include "common/base/status.h"

namespace kmosaic {
namespace {

// Messages that are worked at or whose answers wait. A runner that sends more without
// reading is read no further.
constexpr size_t kMaxOpen = 64;

}  // namespace

SessionReactor::SessionReactor(TaskQueue& queue) : queue_(queue), session_(queue.NewSession()) {
  std::lock_guard lock(mutex_);
  ReadOn();
}

void SessionReactor::ReadOn() {
  if (reading_ || posting_ || read_all_ || broken_ || open_ + answers_.size() >= kMaxOpen) return;
  reading_ = true;
  request_.Clear();
  StartRead(&request_);
}

void SessionReactor::WriteOn() {
  if (writing_ || broken_ || answers_.empty()) return;
  writing_ = true;
  StartWrite(&answers_.front());
}

bool SessionReactor::TakeEnd() {
  bool over = (read_all_ || broken_) && !reading_ && !writing_ && open_ == 0;
  if (!over || finished_ || (!broken_ && !answers_.empty())) return false;
  finished_ = true;
  return true;
}

void SessionReactor::OnReadDone(bool ok) {
  v1::SessionRequest request;
  bool taken = false;
  bool end = false;
  {
    std::lock_guard lock(mutex_);
    reading_ = false;
    taken = ok && !broken_;
    if (taken) {
      request = std::move(request_);
      posting_ = true;
      ++open_;
    } else {
      read_all_ = true;
      end = TakeEnd();
    }
  }
  if (end) {
    Finish(end_);
    return;
  }
  if (!taken) return;
  queue_.Exchange(std::move(request), session_,
                  [this](absl::StatusOr<v1::SessionResponse> response, bool last) {
                    Answer(std::move(response), last);
                  });
  // Only now, so that messages reach the queue in their order. gRPC keeps this alive until
  // the reaction returns.
  std::lock_guard lock(mutex_);
  posting_ = false;
  ReadOn();
}

void SessionReactor::Answer(absl::StatusOr<v1::SessionResponse> response, bool last) {
  // Without `end` the call may be over, and this gone, as soon as the lock is released.
  TaskQueue& queue = queue_;
  bool end = false;
  bool lost = false;
  {
    std::lock_guard lock(mutex_);
    if (!response.ok() && !broken_) {
      broken_ = true;
      end_ = ToGrpc(response.status());
    }
    lost = broken_ && response.ok();
    if (!broken_) {
      answers_.push_back(*std::move(response));
      WriteOn();
    }
    if (last) --open_;
    end = TakeEnd();
    if (!end) ReadOn();
  }
  if (lost) HandBack(queue, *response);
  if (end) Finish(end_);
}

void SessionReactor::OnWriteDone(bool ok) {
  std::deque<v1::SessionResponse> lost;
  bool end = false;
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (ok) {
      answers_.pop_front();
    } else {
      broken_ = true;
      end_ = grpc::Status::CANCELLED;
    }
    if (broken_) lost.swap(answers_);
    WriteOn();
    end = TakeEnd();
    if (!end) ReadOn();
  }
  for (const v1::SessionResponse& response : lost) HandBack(queue_, response);
  if (!ok) queue_.EndSession(session_);
  if (end) Finish(end_);
}

void SessionReactor::OnCancel() {
  queue_.EndSession(session_);
  bool end = false;
  std::deque<v1::SessionResponse> lost;
  {
    std::lock_guard lock(mutex_);
    broken_ = true;
    end_ = grpc::Status::CANCELLED;
    // The one that is being written belongs to gRPC until OnWriteDone.
    if (!writing_) lost.swap(answers_);
    end = TakeEnd();
  }
  for (const v1::SessionResponse& response : lost) HandBack(queue_, response);
  if (end) Finish(end_);
}

void SessionReactor::HandBack(TaskQueue& queue, const v1::SessionResponse& response) {
  for (const v1::Lease& lease : response.sync().granted()) {
    v1::ReleaseRequest release;
    *release.mutable_token() = lease.token();
    release.set_handed_back(true);
    queue.Release(std::move(release), [](const absl::Status&) {});
  }
}

}  // namespace kmosaic
