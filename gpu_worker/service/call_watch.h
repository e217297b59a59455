// Notices when a client goes away.
#ifndef KMOSAIC_GPU_WORKER_SERVICE_CALL_WATCH_H_
#define KMOSAIC_GPU_WORKER_SERVICE_CALL_WATCH_H_

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "gpu_worker/evaluate/cancellation.h"

namespace kmosaic {

// A thread that asks running calls twenty times a second whether they were cancelled
// (gRPC's synchronous server offers no callback) and tells their work. Thread-safe.
class CallWatch {
 public:
  CallWatch();
  ~CallWatch();

  // Watches while the object lives.
  class Guard {
   public:
    // `is_cancelled` (say, ServerContext::IsCancelled; true past the deadline too) and
    // `cancellation` must outlive the guard.
    Guard(CallWatch* watch, std::function<bool()> is_cancelled, Cancellation* cancellation);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    CallWatch* const watch_;
    std::list<std::pair<std::function<bool()>, Cancellation*>>::iterator entry_;
  };

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::pair<std::function<bool()>, Cancellation*>> calls_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SERVICE_CALL_WATCH_H_
