// Tells the coordinator this worker's whole state, over and over, and takes its orders.
#ifndef KMOSAIC_GPU_WORKER_REGISTRY_LOOP_H_
#define KMOSAIC_GPU_WORKER_REGISTRY_LOOP_H_

#include <grpcpp/channel.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gpu_worker/metrics.h"
#include "kernelmosaic/v1/worker.grpc.pb.h"

namespace kmosaic {

// Syncs from a thread of its own while it lives. A coordinator that is away is tried
// again with growing pauses; lost and repeated calls are harmless. Thread-safe.
class RegistryLoop {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    // The state at the time of the call.
    std::function<kernelmosaic::v1::WorkerSyncRequest()> state;
    // Each reply: key of grants, orders.
    std::function<void(const kernelmosaic::v1::WorkerSyncResponse&)> on_reply;
    const WorkerMetrics* metrics = nullptr;
    absl::Duration call_timeout = absl::Seconds(5);
    absl::Duration first_backoff = absl::Milliseconds(200);
    absl::Duration longest_backoff = absl::Seconds(5);
    // Pause when the reply names none.
    absl::Duration default_interval = absl::Seconds(5);
  };
  explicit RegistryLoop(Options options);
  ~RegistryLoop();

  // The state changed: sync now instead of at the next turn.
  void Wake();

  // Syncs once on the caller's thread; used for the last word when draining.
  absl::Status SyncOnce();

 private:
  void Run();
  absl::Status Sync(absl::Duration* next);

  const Options options_;
  std::unique_ptr<kernelmosaic::v1::WorkerRegistry::Stub> stub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_REGISTRY_LOOP_H_
