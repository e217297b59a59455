// DatasetService: rows of what jobs produced, straight from a snapshot of the store.
#ifndef KMOSAIC_COORDINATOR_SERVICE_DATASET_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_DATASET_SERVICE_H_

#include "coordinator/metrics.h"
#include "coordinator/queue/task_queue.h"
#include "kernelmosaic/v1/dataset.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it. A thread for each call; one
// conversation at a time in memory, as fast as the client reads.
class DatasetService : public v1::DatasetService::Service {
 public:
  // Both must outlive the service.
  DatasetService(const TaskQueue& queue, ExportMetrics& metrics)
      : queue_(queue), metrics_(metrics) {}

  // Rows in the order of the request's jobs (each once) and of their items, then the
  // summary: items = rows + everything dropped. NOT_FOUND before the first row when one of
  // the jobs does not exist.
  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportResponse>* writer) override;

 private:
  const TaskQueue& queue_;
  ExportMetrics& metrics_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_DATASET_SERVICE_H_
