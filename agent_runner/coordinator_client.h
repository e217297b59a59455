// RunnerService as this process calls it.
#ifndef KMOSAIC_AGENT_RUNNER_COORDINATOR_CLIENT_H_
#define KMOSAIC_AGENT_RUNNER_COORDINATOR_CLIENT_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent_runner/llm/cancel_token.h"
#include "kernelmosaic/v1/runner.grpc.pb.h"

namespace kmosaic {

// Thread-safe. Each call is one try; what to do about its status is the caller's. A
// cancelled token gives CANCELLED.
class CoordinatorClient {
 public:
  explicit CoordinatorClient(std::shared_ptr<grpc::Channel> channel);

  absl::StatusOr<kernelmosaic::v1::RunnerSyncResponse> Sync(
      const kernelmosaic::v1::RunnerSyncRequest& request, absl::Duration timeout);
  absl::Status RecordStep(const kernelmosaic::v1::RecordStepRequest& request, CancelToken& cancel);
  absl::Status Complete(const kernelmosaic::v1::CompleteRequest& request, CancelToken& cancel);
  absl::Status Release(const kernelmosaic::v1::ReleaseRequest& request, CancelToken& cancel);
  // Answered at once.
  absl::StatusOr<kernelmosaic::v1::SyncEndpointsResponse> SyncEndpoints(
      const kernelmosaic::v1::SyncEndpointsRequest& request);
  // `request.wait` is on top of the call's own time.
  absl::StatusOr<kernelmosaic::v1::Slot> AcquireSlot(
      const kernelmosaic::v1::AcquireSlotRequest& request, CancelToken& cancel);
  // Does not wait long: a slot that cannot be given back runs out by itself.
  void ReleaseSlot(const std::string& id);

 private:
  const std::unique_ptr<kernelmosaic::v1::RunnerService::Stub> stub_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_COORDINATOR_CLIENT_H_
