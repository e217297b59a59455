// RunnerService: leases from the queue, slots and shares of endpoints from placement.
#ifndef KMOSAIC_COORDINATOR_SERVICE_RUNNER_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_RUNNER_SERVICE_H_

#include <mutex>

#include "absl/base/thread_annotations.h"
#include "common/base/clock.h"
#include "coordinator/placement/endpoint_shares.h"
#include "coordinator/placement/placement.h"
#include "coordinator/queue/task_queue.h"
#include "coordinator/service/lease_slots.h"
#include "kernelmosaic/v1/runner.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it. Callback service: a Sync or
// an AcquireSlot that waits holds no thread.
class RunnerService : public v1::RunnerService::CallbackService {
 public:
  // All must outlive the service.
  RunnerService(TaskQueue& queue, Placement& placement, LeaseSlots& lease_slots,
                const Clock& clock);

  grpc::ServerBidiReactor<v1::SessionRequest, v1::SessionResponse>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context,
                                 const v1::RunnerSyncRequest* request,
                                 v1::RunnerSyncResponse* response) override;
  grpc::ServerUnaryReactor* RecordStep(grpc::CallbackServerContext* context,
                                       const v1::RecordStepRequest* request,
                                       v1::RecordStepResponse* response) override;
  grpc::ServerUnaryReactor* Complete(grpc::CallbackServerContext* context,
                                     const v1::CompleteRequest* request,
                                     v1::CompleteResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;
  grpc::ServerUnaryReactor* SyncEndpoints(grpc::CallbackServerContext* context,
                                          const v1::SyncEndpointsRequest* request,
                                          v1::SyncEndpointsResponse* response) override;
  grpc::ServerUnaryReactor* AcquireSlot(grpc::CallbackServerContext* context,
                                        const v1::AcquireSlotRequest* request,
                                        v1::Slot* response) override;
  grpc::ServerUnaryReactor* ReleaseSlot(grpc::CallbackServerContext* context,
                                        const v1::ReleaseSlotRequest* request,
                                        v1::ReleaseSlotResponse* response) override;

 private:
  TaskQueue& queue_;
  Placement& placement_;
  LeaseSlots& lease_slots_;
  const Clock& clock_;
  std::mutex mutex_;
  EndpointShares endpoints_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_RUNNER_SERVICE_H_
