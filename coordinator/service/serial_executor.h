// One thread that runs what it is given, in order.
#ifndef KMOSAIC_COORDINATOR_SERVICE_SERIAL_EXECUTOR_H_
#define KMOSAIC_COORDINATOR_SERVICE_SERIAL_EXECUTOR_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"

namespace kmosaic {

// Thread-safe. For short work that callers must not do on their own thread.
class SerialExecutor {
 public:
  SerialExecutor();
  // Runs what was posted, then returns.
  ~SerialExecutor();
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  void Post(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Last: it uses the rest.
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_SERIAL_EXECUTOR_H_
