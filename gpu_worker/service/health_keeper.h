// Runs a sick worker's self-test until it is well again.
#ifndef KMOSAIC_GPU_WORKER_SERVICE_HEALTH_KEEPER_H_
#define KMOSAIC_GPU_WORKER_SERVICE_HEALTH_KEEPER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "gpu_worker/evaluate/cancellation.h"
#include "gpu_worker/service/health_monitor.h"

namespace kmosaic {

// A HealthMonitor with a thread that does what it asks for. Thread-safe.
class HealthKeeper {
 public:
  struct Options {
    HealthMonitor::Options monitor;
    const Clock* clock = nullptr;  // outlives this
    // Both are called on the keeper's thread, without a lock. The test ends soon after its
    // cancellation; what it says then is ignored.
    std::function<absl::Status(Cancellation*)> self_test;
    // After each change between well and sick; `reason` is empty when well.
    std::function<void(bool well, const std::string& reason)> on_change;
  };
  explicit HealthKeeper(Options options);
  ~HealthKeeper();

  // Calls back from now on.
  void Start();
  // Cancels a test that runs and waits for its end; nothing is called afterwards.
  void Stop();

  // An evaluation ended; `failure` says how the machine spoiled it.
  void OnEvaluation(const std::optional<std::string>& failure);

  bool well() const;
  std::string reason() const;

 private:
  void Run();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HealthMonitor monitor_;
  bool stopping_ = false;
  Cancellation cancellation_;
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SERVICE_HEALTH_KEEPER_H_
