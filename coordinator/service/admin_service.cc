#include "coordinator/service/admin_service.h"

#include <utility>

#include "common/base/status.h"
#include "common/log/log.h"
#include "coordinator/service/unary_reply.h"

namespace kmosaic {

AdminService::AdminService(v1::Server server, TaskQueue& queue, Placement& placement,
                           AuditLog* audit, MakeBackup make_backup)
    : server_(std::move(server)),
      queue_(queue),
      placement_(placement),
      audit_(audit),
      make_backup_(std::move(make_backup)) {}

grpc::ServerUnaryReactor* AdminService::GetServer(grpc::CallbackServerContext* context,
                                                  const v1::GetServerRequest*,
                                                  v1::Server* response) {
  *response = server_;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest*,
                                                    v1::ListWorkersResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  for (v1::Worker& worker : placement_.Workers()) *response->add_workers() = std::move(worker);
  queue_.ListRunners([reactor, response](absl::StatusOr<std::vector<v1::Runner>> runners) {
    if (runners.ok()) {
      for (v1::Runner& runner : *runners) *response->add_runners() = std::move(runner);
    }
    reactor->Finish(ToGrpc(runners.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::DrainWorker(grpc::CallbackServerContext* context,
                                                    const v1::DrainWorkerRequest* request,
                                                    v1::DrainWorkerResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<v1::Worker> worker = placement_.Drain(request->id(), request->drain());
  Note(*context, request->drain() ? "drain" : "undrain", request->id(), worker.status());
  if (worker.ok()) {
    LogInfo(request->drain() ? "worker is to drain" : "worker is taken back",
            {{"worker", request->id()}});
    *response->mutable_worker() = *std::move(worker);
    std::string incarnation = request->drain() ? placement_.Incarnation(request->id()) : "";
    queue_.KeepDrainOrder(request->id(), incarnation, ReplyStatusTo(reactor));
    return reactor;
  }
  reactor->Finish(ToGrpc(worker.status()));
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::Backup(grpc::CallbackServerContext* context,
                                               const v1::BackupRequest* request,
                                               v1::BackupResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  backups_.Post([this, context, reactor, response, directory = request->directory()] {
    absl::StatusOr<v1::BackupResponse> made = make_backup_(directory);
    Note(*context, "backup", directory, made.status());
    if (made.ok()) {
      LogInfo("backed up", {{"directory", directory}, {"bytes", made->bytes()}});
      *response = *std::move(made);
    }
    reactor->Finish(ToGrpc(made.status()));
  });
  return reactor;
}

void AdminService::Note(const grpc::CallbackServerContext& context, const std::string& verb,
                        const std::string& subject, const absl::Status& outcome) {
  if (audit_ != nullptr) audit_->Add({context.peer(), verb, subject, outcome});
}

}  // namespace kmosaic
