#include "coordinator/service/worker_registry.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr uint32_t kMaxSlots = 4096;

absl::Status Check(const v1::WorkerSyncRequest& request) {
  if (request.worker().empty()) return absl::InvalidArgumentError("worker is empty");
  if (request.incarnation().empty()) return absl::InvalidArgumentError("incarnation is empty");
  if (request.endpoint().empty()) return absl::InvalidArgumentError("endpoint is empty");
  for (const v1::RoleSlots& slots : request.slots()) {
    if (slots.role() == v1::ROLE_UNSPECIFIED || !v1::Role_IsValid(slots.role())) {
      return absl::InvalidArgumentError("slots: a role is not known");
    }
    if (slots.total() > kMaxSlots) {
      return absl::InvalidArgumentError(absl::StrCat(
          "slots: ", slots.total(), " of role ", RoleName(slots.role()), "; at most ", kMaxSlots));
    }
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* WorkerRegistry::Sync(grpc::CallbackServerContext* context,
                                               const v1::WorkerSyncRequest* request,
                                               v1::WorkerSyncResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::Status status = Check(*request);
  if (status.ok()) *response = placement_.Sync(*request);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace kmosaic
