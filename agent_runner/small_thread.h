// Threads for many conversations at once.
#ifndef KMOSAIC_AGENT_RUNNER_SMALL_THREAD_H_
#define KMOSAIC_AGENT_RUNNER_SMALL_THREAD_H_

#include <pthread.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"

namespace kmosaic {

// A thread with a stack of 1 MiB, of which only what is used takes memory. The destructor
// waits for its end.
class SmallThread {
 public:
  // RESOURCE_EXHAUSTED when the system gives no further thread.
  static absl::StatusOr<std::unique_ptr<SmallThread>> Start(std::function<void()> body);
  ~SmallThread();
  SmallThread(const SmallThread&) = delete;
  SmallThread& operator=(const SmallThread&) = delete;

 private:
  explicit SmallThread(std::function<void()> body);
  static void* Enter(void* self);

  const std::function<void()> body_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_SMALL_THREAD_H_
