// AdminService: the server itself, workers, runners, drain.
#ifndef KMOSAIC_COORDINATOR_SERVICE_ADMIN_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_ADMIN_SERVICE_H_

#include "coordinator/placement/placement.h"
#include "coordinator/queue/task_queue.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it.
class AdminService : public v1::AdminService::CallbackService {
 public:
  // `queue` and `placement` must outlive the service. `server` is what GetServer says.
  AdminService(v1::Server server, TaskQueue& queue, Placement& placement);

  grpc::ServerUnaryReactor* GetServer(grpc::CallbackServerContext* context,
                                      const v1::GetServerRequest* request,
                                      v1::Server* response) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse* response) override;

 private:
  const v1::Server server_;
  TaskQueue& queue_;
  Placement& placement_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_ADMIN_SERVICE_H_
