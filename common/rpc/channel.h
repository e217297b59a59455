// Client side of gRPC: one set of channel arguments, deadlines, retry rules.
#ifndef KMOSAIC_COMMON_RPC_CHANNEL_H_
#define KMOSAIC_COMMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace kmosaic {

// Largest message either side sends or takes.
inline constexpr int kMaxMessageBytes = 64 * 1024 * 1024;

// Lazy: connects with the first call. `target` is HOST:PORT or unix:PATH. Reconnects
// with capped back-off (100 ms to 5 s) and never through an HTTP proxy.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target);

// Whether another try may help: the service was away, asked for patience, or the call
// was cut off. A deadline is the caller's own to judge.
bool IsTransient(const absl::Status& status);

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout);

// Full jitter: uniform in [0, min(cap, base * 2^attempt)], attempt from 0.
absl::Duration Backoff(int attempt, absl::Duration base, absl::Duration cap);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_RPC_CHANNEL_H_
