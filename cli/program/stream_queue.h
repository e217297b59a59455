// Messages on their way from a thread that reads a stream to the one that handles them.
#ifndef KMOSAIC_CLI_PROGRAM_STREAM_QUEUE_H_
#define KMOSAIC_CLI_PROGRAM_STREAM_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace kmosaic {

// Thread-safe. Bounded: a slow taker slows the reader down.
template <typename Message>
class StreamQueue {
 public:
  explicit StreamQueue(size_t capacity) : capacity_(capacity) {}

  void Push(Message message) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return messages_.size() < capacity_ || abandoned_; });
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }

  // No further message comes; `status` is how the stream ended.
  void Close(absl::Status status) {
    std::lock_guard lock(mutex_);
    end_ = std::move(status);
    changed_.notify_all();
  }

  // No further message is taken; the reader does not wait any more.
  void Abandon() {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }

  // The next message; nothing after `timeout`, or when all are taken and the stream has
  // ended, which `end` then tells.
  std::optional<Message> Pop(absl::Duration timeout, std::optional<absl::Status>& end) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                      [this] { return !messages_.empty() || end_.has_value(); });
    if (messages_.empty()) {
      end = end_;
      return std::nullopt;
    }
    Message message = std::move(messages_.front());
    messages_.pop_front();
    changed_.notify_all();
    return message;
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  std::optional<absl::Status> end_;
  bool abandoned_ = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_STREAM_QUEUE_H_
