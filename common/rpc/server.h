// Server side of gRPC: health, reflection, limits, port 0.
#ifndef KMOSAIC_COMMON_RPC_SERVER_H_
#define KMOSAIC_COMMON_RPC_SERVER_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kmosaic {

// A value: serves while it lives.
class RpcServer {
 public:
  struct Options {
    // HOST:PORT (port 0 takes a free one) or unix:PATH.
    std::string listen = "127.0.0.1:0";
    // Must outlive the server.
    std::vector<grpc::Service*> services;
    // How long running calls may take to end when the server stops.
    absl::Duration grace = absl::Seconds(2);
  };

  // UNAVAILABLE with the address when it cannot be bound.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const Options& options);
  // Cancels calls that outlast the grace time.
  ~RpcServer();

  // What clients dial: the host as given with the port as bound, or unix:PATH.
  const std::string& target() const { return target_; }

  // What the standard health service answers.
  void SetServing(bool serving);

 private:
  RpcServer() = default;
  std::unique_ptr<grpc::Server> server_;
  std::string target_;
  absl::Duration grace_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_RPC_SERVER_H_
