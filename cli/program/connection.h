// Which coordinator a command talks to, and how calls to it end.
#ifndef KMOSAIC_CLI_PROGRAM_CONNECTION_H_
#define KMOSAIC_CLI_PROGRAM_CONNECTION_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/program/host.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"

namespace kmosaic {

struct Connection {
  std::string target;
  // "--coordinator", "KMOSAIC_COORDINATOR", "kmosaic up (process 123)".
  std::string named_by;
  std::shared_ptr<grpc::Channel> channel;
};

// The address given by the flag, else by KMOSAIC_COORDINATOR, else a running `kmosaic up`
// of this user. UNAVAILABLE when there is none, INVALID_ARGUMENT when several `kmosaic up`
// run. Does not connect yet.
absl::StatusOr<Connection> FindCoordinator(const Host& host, const std::string& flag);

// The same status; one that came from not reaching the service names the address tried and
// what to do.
absl::Status Explain(const Connection& connection, const absl::Status& status);

// One call that Ctrl-C cuts off. `call` gets the context and the response to fill in.
template <typename Response>
absl::StatusOr<Response> Call(
    const Host& host, const Connection& connection,
    const std::function<grpc::Status(grpc::ClientContext*, Response*)>& call,
    absl::Duration timeout = absl::Seconds(30)) {
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  Interrupt::Scope scope(*host.interrupt, [&context] { context.TryCancel(); });
  Response response;
  absl::Status status = FromGrpc(call(&context, &response));
  if (!status.ok()) return Explain(connection, status);
  return response;
}

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_CONNECTION_H_
