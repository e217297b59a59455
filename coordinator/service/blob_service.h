// BlobService over files.
#ifndef KMOSAIC_COORDINATOR_SERVICE_BLOB_SERVICE_H_
#define KMOSAIC_COORDINATOR_SERVICE_BLOB_SERVICE_H_

#include "common/base/enum_names.h"
#include "coordinator/service/blob_files.h"
#include "kernelmosaic/v1/blob.grpc.pb.h"

namespace kmosaic {

// Serves while it lives; the server must be gone before it. A thread for each call: they
// are bounded by the disk.
class BlobService : public v1::BlobService::Service {
 public:
  // `files` must outlive the service.
  explicit BlobService(const BlobFiles& files) : files_(files) {}

  grpc::Status Put(grpc::ServerContext* context, grpc::ServerReader<v1::PutBlobRequest>* reader,
                   v1::PutBlobResponse* response) override;
  grpc::Status Get(grpc::ServerContext* context, const v1::GetBlobRequest* request,
                   grpc::ServerWriter<v1::GetBlobResponse>* writer) override;

 private:
  const BlobFiles& files_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_BLOB_SERVICE_H_
