// AdminService: the server itself, workers, runners, drain, backup.
#ifndef KMOSAIC_COORDINATOR_SERVICE_ADMIN_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_ADMIN_SERVICE_H_

#include <functional>
#include <string>

#include "coordinator/placement/placement.h"
#include "coordinator/queue/task_queue.h"
#include "coordinator/service/audit_log.h"
#include "coordinator/service/serial_executor.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it.
class AdminService : public v1::AdminService::CallbackService {
 public:
  // Backs the coordinator's data up to a directory; blocks.
  using MakeBackup =
      std::function<absl::StatusOr<v1::BackupResponse>(const std::string& directory)>;

  // All must outlive the service; `audit` may be null. `server` is what GetServer says.
  AdminService(v1::Server server, TaskQueue& queue, Placement& placement, AuditLog* audit,
               MakeBackup make_backup);

  grpc::ServerUnaryReactor* GetServer(grpc::CallbackServerContext* context,
                                      const v1::GetServerRequest* request,
                                      v1::Server* response) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse* response) override;
  grpc::ServerUnaryReactor* Backup(grpc::CallbackServerContext* context,
                                   const v1::BackupRequest* request,
                                   v1::BackupResponse* response) override;

 private:
  void Note(const grpc::CallbackServerContext& context, const std::string& verb,
            const std::string& subject, const absl::Status& outcome);

  const v1::Server server_;
  TaskQueue& queue_;
  Placement& placement_;
  AuditLog* const audit_;
  const MakeBackup make_backup_;
  // One backup at a time. Last: its work uses the rest.
  SerialExecutor backups_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_ADMIN_SERVICE_H_
