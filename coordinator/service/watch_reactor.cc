#include "coordinator/service/watch_reactor.h"

#include <algorithm>
#include <iterator>

#include "common/base/status.h"
#include "coordinator/queue/reader.h"

namespace kmosaic {
namespace {

constexpr size_t kEventsPerRead = 256;

}  // namespace

WatchReactor::WatchReactor(TaskQueue& queue, SerialExecutor& executor, const std::string& job,
                           uint64_t from_seq)
    : queue_(queue), executor_(executor), job_(job), next_seq_(std::max<uint64_t>(from_seq, 1)) {
  // First the subscription, then the first read, so that nothing falls between them.
  subscription_ = queue_.Subscribe(job_, [this] { OnEvent(); });
  executor_.Post([this] { Pump(); });
}

void WatchReactor::OnEvent() {
  {
    std::lock_guard lock(mutex_);
    again_ = true;
    if (busy_) return;
    busy_ = true;
  }
  executor_.Post([this] { Pump(); });
}

// Whoever calls Finish leaves busy_ set, so that nothing begins after it.
void WatchReactor::Pump() {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      again_ = false;
    }
    absl::StatusOr<EventPage> page =
        ReadEvents(queue_.StoreOf(job_), job_, next_seq_, kEventsPerRead);
    if (!page.ok()) {
      Finish(ToGrpc(page.status()));
      return;
    }
    last_page_ = page->ended;
    pending_.assign(std::make_move_iterator(page->events.begin()),
                    std::make_move_iterator(page->events.end()));
    if (!pending_.empty()) {
      WriteNext();
      return;
    }
    if (last_page_) {
      Finish(grpc::Status::OK);
      return;
    }
    std::unique_lock lock(mutex_);
    if (cancelled_) {
      lock.unlock();
      Finish(grpc::Status::CANCELLED);
      return;
    }
    if (again_) continue;
    busy_ = false;
    return;
  }
}

void WatchReactor::WriteNext() {
  next_seq_ = pending_.front().seq() + 1;
  StartWrite(&pending_.front());
}

void WatchReactor::OnWriteDone(bool ok) {
  if (!ok) {
    Finish(grpc::Status::CANCELLED);
    return;
  }
  pending_.pop_front();
  if (!pending_.empty()) {
    WriteNext();
  } else if (last_page_) {
    Finish(grpc::Status::OK);
  } else {
    executor_.Post([this] { Pump(); });
  }
}

void WatchReactor::OnCancel() {
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (busy_) return;
    busy_ = true;
  }
  Finish(grpc::Status::CANCELLED);
}

void WatchReactor::OnDone() {
  subscription_.reset();
  delete this;
}

}  // namespace kmosaic
