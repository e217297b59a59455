#include "agent_runner/coordinator_client.h"

#include <utility>

#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

using Stub = v1::RunnerService::Stub;

constexpr absl::Duration kCallTimeout = absl::Seconds(15);
constexpr absl::Duration kShortTimeout = absl::Seconds(5);

template <typename Request, typename Response>
absl::StatusOr<Response> Call(Stub& stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              const Request& request, absl::Duration timeout, CancelToken* cancel) {
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  Response response;
  grpc::Status status;
  if (cancel != nullptr) {
    CancelToken::Registration registration(*cancel, [&context] { context.TryCancel(); });
    status = (stub.*method)(&context, request, &response);
  } else {
    status = (stub.*method)(&context, request, &response);
  }
  if (!status.ok()) return FromGrpc(status);
  return response;
}

}  // namespace

CoordinatorClient::CoordinatorClient(std::shared_ptr<grpc::Channel> channel)
    : stub_(v1::RunnerService::NewStub(std::move(channel))) {}

absl::StatusOr<v1::RunnerSyncResponse> CoordinatorClient::Sync(const v1::RunnerSyncRequest& request,
                                                               absl::Duration timeout) {
  return Call(*stub_, &Stub::Sync, request, timeout, nullptr);
}

absl::Status CoordinatorClient::RecordStep(const v1::RecordStepRequest& request,
                                           CancelToken& cancel) {
  return Call(*stub_, &Stub::RecordStep, request, kCallTimeout, &cancel).status();
}

absl::Status CoordinatorClient::Complete(const v1::CompleteRequest& request, CancelToken& cancel) {
  return Call(*stub_, &Stub::Complete, request, kCallTimeout, &cancel).status();
}

absl::Status CoordinatorClient::Release(const v1::ReleaseRequest& request, CancelToken& cancel) {
  return Call(*stub_, &Stub::Release, request, kCallTimeout, &cancel).status();
}

absl::StatusOr<v1::SyncEndpointsResponse> CoordinatorClient::SyncEndpoints(
    const v1::SyncEndpointsRequest& request) {
  return Call(*stub_, &Stub::SyncEndpoints, request, kShortTimeout, nullptr);
}

absl::StatusOr<v1::Slot> CoordinatorClient::AcquireSlot(const v1::AcquireSlotRequest& request,
                                                        CancelToken& cancel) {
  absl::Duration wait =
      absl::Seconds(request.wait().seconds()) + absl::Nanoseconds(request.wait().nanos());
  return Call(*stub_, &Stub::AcquireSlot, request, kCallTimeout + wait, &cancel);
}

void CoordinatorClient::ReleaseSlot(const std::string& id) {
  v1::ReleaseSlotRequest request;
  request.set_id(id);
  absl::Status status = Call(*stub_, &Stub::ReleaseSlot, request, kShortTimeout, nullptr).status();
  if (!status.ok()) {
    LogDebug("slot not given back, it will run out",
             {{"slot", id}, {"error", std::string(status.message())}});
  }
}

}  // namespace kmosaic
