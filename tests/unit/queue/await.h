// Waits for the answer of a callback API.
#ifndef KMOSAIC_TESTS_UNIT_QUEUE_AWAIT_H_
#define KMOSAIC_TESTS_UNIT_QUEUE_AWAIT_H_

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kmosaic {

// Copies share one answer.
template <typename Answer>
class Await {
 public:
  Await()
      : promise_(std::make_shared<std::promise<Answer>>()),
        future_(promise_->get_future().share()) {}

  // To be passed as the callback; to be called once.
  std::function<void(Answer)> done() const {
    return [promise = promise_](Answer answer) { promise->set_value(std::move(answer)); };
  }

  bool ready() const {
    return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  // DEADLINE_EXCEEDED when nothing comes for a minute.
  Answer Get() const {
    if (future_.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
      return absl::DeadlineExceededError("no answer");
    }
    return future_.get();
  }

 private:
  std::shared_ptr<std::promise<Answer>> promise_;
  std::shared_future<Answer> future_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_QUEUE_AWAIT_H_
