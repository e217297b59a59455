// Ends a unary call with what the queue answered.
#ifndef KMOSAIC_COORDINATOR_SERVICE_UNARY_REPLY_H_
#define KMOSAIC_COORDINATOR_SERVICE_UNARY_REPLY_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/status.h"

namespace kmosaic {

// `response` lives as long as the call, which Finish ends.
template <typename T>
std::function<void(absl::StatusOr<T>)> ReplyTo(grpc::ServerUnaryReactor* reactor, T* response) {
  return [reactor, response](absl::StatusOr<T> result) {
    if (result.ok()) *response = *std::move(result);
    reactor->Finish(ToGrpc(result.status()));
  };
}

inline std::function<void(absl::Status)> ReplyStatusTo(grpc::ServerUnaryReactor* reactor) {
  return [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); };
}

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_UNARY_REPLY_H_
