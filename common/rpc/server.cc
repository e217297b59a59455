#include "common/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>

#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"

namespace kmosaic {

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const Options& options) {
  static std::once_flag plugins;
  std::call_once(plugins, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  // A second server on the same port is an error, not a silent share.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients ping every 20 s (rpc/channel.cc).
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : options.services) builder.RegisterService(service);

  std::unique_ptr<RpcServer> result(new RpcServer);
  result->grace_ = options.grace;
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options.listen, ": it may be taken; give another address or port 0"));
  }
  if (absl::StartsWith(options.listen, "unix:")) {
    result->target_ = options.listen;
  } else {
    std::string host = options.listen.substr(0, options.listen.rfind(':'));
    result->target_ = absl::StrCat(host, ":", port);
  }
  return result;
}

RpcServer::~RpcServer() {
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace_));
  }
}

void RpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

}  // namespace kmosaic
