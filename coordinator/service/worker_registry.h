// WorkerRegistry over placement.
#ifndef KMOSAIC_COORDINATOR_SERVICE_WORKER_REGISTRY_H_
#define KMOSAIC_COORDINATOR_SERVICE_WORKER_REGISTRY_H_

#include "coordinator/placement/placement.h"
#include "kernelmosaic/v1/worker.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it.
class WorkerRegistry : public v1::WorkerRegistry::CallbackService {
 public:
  // `placement` must outlive the service.
  explicit WorkerRegistry(Placement& placement) : placement_(placement) {}

  // INVALID_ARGUMENT names the field that is missing.
  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context,
                                 const v1::WorkerSyncRequest* request,
                                 v1::WorkerSyncResponse* response) override;

 private:
  Placement& placement_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_WORKER_REGISTRY_H_
