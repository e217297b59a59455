// KernelService over the evaluator: grants, slots, cancellation, metrics.
#ifndef KMOSAIC_GPU_WORKER_SERVICE_KERNEL_SERVICE_H_
#define KMOSAIC_GPU_WORKER_SERVICE_KERNEL_SERVICE_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "gpu_worker/compile/slots.h"
#include "gpu_worker/evaluate/evaluator.h"
#include "gpu_worker/metrics.h"
#include "gpu_worker/service/call_watch.h"
#include "gpu_worker/service/grant_keys.h"
#include "kernelmosaic/v1/kernel.grpc.pb.h"

namespace kmosaic {

// Thread-safe.
class KernelService : public v1::KernelService::Service {
 public:
  struct Options {
    const Evaluator* evaluator = nullptr;  // all of these outlive the service
    const GrantKeys* grants = nullptr;
    CallWatch* watch = nullptr;
    const WorkerMetrics* metrics = nullptr;
    const Clock* clock = nullptr;
    // Admission; requests of a role wait for a slot until their deadline.
    Slots* compile_slots = nullptr;
    Slots* verify_slots = nullptr;
    Slots* benchmark_slots = nullptr;
    // Only tests serve requests without a grant.
    bool require_grants = true;
    // For the worker's health, after each evaluation: the reason where the machine spoiled it,
    // nothing where it did not. Not told: what was cancelled, and a compile that went well, which
    // says nothing of the device.
    std::function<void(const std::optional<std::string>& failure)> on_evaluation =
        [](const std::optional<std::string>&) {};
  };
  explicit KernelService(Options options) : options_(std::move(options)) {}

  grpc::Status Compile(grpc::ServerContext* context, const v1::KernelRequest* request,
                       v1::KernelResponse* response) override;
  grpc::Status Verify(grpc::ServerContext* context, const v1::KernelRequest* request,
                      v1::KernelResponse* response) override;
  grpc::Status Benchmark(grpc::ServerContext* context, const v1::KernelRequest* request,
                         v1::KernelResponse* response) override;
  grpc::Status Evaluate(grpc::ServerContext* context, const v1::EvaluateRequest* request,
                        v1::KernelResponse* response) override;

  // Requests in progress.
  uint32_t busy() const { return busy_; }

 private:
  grpc::Status Serve(grpc::ServerContext* context, const v1::KernelRequest& request,
                     v1::Role last_stage, v1::KernelResponse* response);

  const Options options_;
  std::atomic<uint32_t> busy_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SERVICE_KERNEL_SERVICE_H_
