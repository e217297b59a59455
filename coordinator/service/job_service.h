// JobService over the queue: validate, convert, call, convert.
#ifndef KMOSAIC_COORDINATOR_SERVICE_JOB_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_JOB_SERVICE_H_

#include <functional>
#include <string>

#include "coordinator/queue/task_queue.h"
#include "coordinator/service/audit_log.h"
#include "coordinator/service/serial_executor.h"
#include "kernelmosaic/v1/job.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it. Callback service: an open
// Watch holds no thread.
class JobService : public v1::JobService::CallbackService {
 public:
  struct Options {
    SubmissionLimits limits;
    // Why no registered worker can serve such a job now; empty when one can. Called from
    // any thread.
    std::function<std::string(const v1::JobSpec&)> unsatisfiable;
    // Calls that change jobs are noted there; null: nowhere. Outlives the service.
    AuditLog* audit = nullptr;
  };

  // `queue` must outlive the service.
  JobService(Options options, TaskQueue& queue);

  grpc::ServerReadReactor<v1::SubmitRequest>* Submit(grpc::CallbackServerContext* context,
                                                     v1::SubmitResponse* response) override;
  grpc::ServerBidiReactor<v1::ExtendJobRequest, v1::ExtendJobResponse>* Extend(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::JobRequest* request,
                                v1::Job* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListJobsRequest* request,
                                 v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const v1::JobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* Pause(grpc::CallbackServerContext* context,
                                  const v1::JobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* Resume(grpc::CallbackServerContext* context,
                                   const v1::JobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* Retry(grpc::CallbackServerContext* context,
                                  const v1::RetryJobRequest* request,
                                  v1::RetryJobResponse* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::JobRequest* request, v1::Job* response) override;
  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* ListItems(grpc::CallbackServerContext* context,
                                      const v1::ListItemsRequest* request,
                                      v1::ListItemsResponse* response) override;
  grpc::ServerUnaryReactor* GetItem(grpc::CallbackServerContext* context,
                                    const v1::ItemRequest* request,
                                    v1::ItemDetail* response) override;
  grpc::ServerUnaryReactor* ListDeadLetters(grpc::CallbackServerContext* context,
                                            const v1::ListDeadLettersRequest* request,
                                            v1::ListDeadLettersResponse* response) override;
  grpc::ServerUnaryReactor* PurgeDeadLetters(grpc::CallbackServerContext* context,
                                             const v1::PurgeDeadLettersRequest* request,
                                             v1::PurgeDeadLettersResponse* response) override;

 private:
  void FillUnsatisfiable(v1::Job& job) const;

  const Options options_;
  TaskQueue& queue_;
  // Reads of open Watches.
  SerialExecutor watch_executor_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_JOB_SERVICE_H_
