#include "coordinator/service/blob_service.h"

#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace kmosaic {

grpc::Status BlobService::Put(grpc::ServerContext* context,
                              grpc::ServerReader<v1::PutBlobRequest>* reader,
                              v1::PutBlobResponse* response) {
  v1::PutBlobRequest request;
  if (!reader->Read(&request)) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the stream held no message"};
  }
  std::string digest = request.digest();
  absl::StatusOr<std::unique_ptr<BlobFiles::Writer>> writer = files_.Put(digest);
  if (!writer.ok()) return ToGrpc(writer.status());
  do {
    if (!request.digest().empty() && request.digest() != digest) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "a second digest in one stream"};
    }
    if (absl::Status status = (*writer)->Append(request.chunk()); !status.ok()) {
      return ToGrpc(status);
    }
  } while (reader->Read(&request));
  // A client that went away in the middle looks like the end of its stream.
  if (context->IsCancelled()) return grpc::Status::CANCELLED;
  absl::StatusOr<uint64_t> size = (*writer)->Commit();
  if (!size.ok()) return ToGrpc(size.status());
  response->set_digest(std::move(digest));
  response->set_bytes(*size);
  return grpc::Status::OK;
}

grpc::Status BlobService::Get(grpc::ServerContext*, const v1::GetBlobRequest* request,
                              grpc::ServerWriter<v1::GetBlobResponse>* writer) {
  return ToGrpc(files_.Get(request->digest(), [writer](std::string chunk) {
    v1::GetBlobResponse response;
    response.set_chunk(std::move(chunk));
    return writer->Write(response);
  }));
}

}  // namespace kmosaic
