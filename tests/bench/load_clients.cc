#include "tests/bench/load_clients.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

constexpr uint64_t kTasksPerMessage = 2000;

v1::CompleteRequest Completion(const v1::LeaseToken& token) {
  v1::CompleteRequest request;
  *request.mutable_token() = token;
  request.mutable_result()->set_verified(true);
  request.mutable_result()->set_verdict(v1::VERDICT_PASSED);
  request.mutable_result()->set_stop_reason(v1::STOP_REASON_SOLVED);
  return request;
}

v1::RunnerSyncRequest SyncFor(const std::string& runner, uint32_t free) {
  v1::RunnerSyncRequest sync;
  sync.set_runner(runner);
  sync.set_free(free);
  sync.mutable_wait()->set_seconds(1);
  return sync;
}

// Waits for the connection: with many clients at once a first try may fail.
grpc::ClientContext* Patient(grpc::ClientContext& context) {
  context.set_wait_for_ready(true);
  return &context;
}

class SessionClient : public LoadClient {
 public:
  SessionClient(const std::string& target, int number, std::string job, size_t payload_bytes)
      : job_(std::move(job)),
        runner_(absl::StrCat("load-", number)),
        payload_bytes_(payload_bytes),
        channel_(OwnConnection(target, number)),
        jobs_(v1::JobService::NewStub(channel_)),
        runners_(v1::RunnerService::NewStub(channel_)),
        extend_(jobs_->Extend(Patient(extend_context_))),
        session_(runners_->Session(Patient(session_context_))) {}

  ~SessionClient() override {
    if (!extend_over_) {
      extend_->WritesDone();
      static_cast<void>(extend_->Finish());
    }
    if (session_over_) return;
    session_->WritesDone();
    v1::SessionResponse rest;
    while (session_->Read(&rest)) {
    }
    static_cast<void>(session_->Finish());
  }

  absl::Status Submit(uint64_t first, uint64_t count) override {
    v1::ExtendJobRequest request;
    request.set_id(job_);
    for (uint64_t i = 0; i < count; ++i) {
      *request.add_tasks() = LoadTask(first + i, payload_bytes_);
    }
    v1::ExtendJobResponse response;
    if (extend_->Write(request) && extend_->Read(&response)) return absl::OkStatus();
    extend_over_ = true;
    return Annotate(FromGrpc(extend_->Finish()), "Extend");
  }

  absl::StatusOr<uint64_t> CompleteAndLease(uint32_t free) override {
    v1::SessionRequest request;
    request.set_id(++last_id_);
    for (const v1::LeaseToken& token : held_) *request.add_completions() = Completion(token);
    held_.clear();
    if (free > 0) *request.mutable_sync() = SyncFor(runner_, free);
    if (request.completions().empty() && free == 0) return 0;
    if (!session_->Write(request)) return EndSession();
    size_t completed = 0;
    bool synced = free == 0;
    while (completed < static_cast<size_t>(request.completions_size()) || !synced) {
      v1::SessionResponse response;
      if (!session_->Read(&response)) return EndSession();
      for (const v1::CallStatus& status : response.completions()) {
        if (status.code() != 0) return absl::InternalError(status.message());
        ++completed;
      }
      if (!response.has_sync_status()) continue;
      if (response.sync_status().code() != 0) {
        return absl::InternalError(response.sync_status().message());
      }
      synced = true;
      for (const v1::Lease& lease : response.sync().granted()) held_.push_back(lease.token());
    }
    return held_.size();
  }

 private:
  absl::Status EndSession() {
    session_over_ = true;
    return Annotate(FromGrpc(session_->Finish()), "Session");
  }

  const std::string job_;
  const std::string runner_;
  const size_t payload_bytes_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  const std::unique_ptr<v1::RunnerService::Stub> runners_;
  grpc::ClientContext extend_context_;
  grpc::ClientContext session_context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ExtendJobRequest, v1::ExtendJobResponse>>
      extend_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>> session_;
  // Finished after an error; once is all that gRPC allows.
  bool extend_over_ = false;
  bool session_over_ = false;
  uint64_t last_id_ = 0;
  std::vector<v1::LeaseToken> held_;
};

class UnaryClient : public LoadClient {
 public:
  UnaryClient(const std::string& target, int number, size_t payload_bytes)
      : runner_(absl::StrCat("load-", number)),
        payload_bytes_(payload_bytes),
        channel_(OwnConnection(target, number)),
        jobs_(v1::JobService::NewStub(channel_)),
        runners_(v1::RunnerService::NewStub(channel_)) {}

  absl::Status Submit(uint64_t first, uint64_t count) override {
    return SubmitJob(*jobs_, LoadSpec("load", 1), first, count, payload_bytes_).status();
  }

  absl::StatusOr<uint64_t> CompleteAndLease(uint32_t free) override {
    for (const v1::LeaseToken& token : held_) {
      grpc::ClientContext context;
      v1::CompleteResponse response;
      grpc::Status status = runners_->Complete(&context, Completion(token), &response);
      if (!status.ok()) return FromGrpc(status);
    }
    held_.clear();
    if (free == 0) return 0;
    grpc::ClientContext context;
    v1::RunnerSyncResponse response;
    grpc::Status status = runners_->Sync(&context, SyncFor(runner_, free), &response);
    if (!status.ok()) return FromGrpc(status);
    for (const v1::Lease& lease : response.granted()) held_.push_back(lease.token());
    return held_.size();
  }

 private:
  const std::string runner_;
  const size_t payload_bytes_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  const std::unique_ptr<v1::RunnerService::Stub> runners_;
  std::vector<v1::LeaseToken> held_;
};

}  // namespace

std::shared_ptr<grpc::Channel> OwnConnection(const std::string& target, int number) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // Channels with other arguments share no connection.
  arguments.SetInt("kmosaic.load_client", number);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

v1::TaskSpec LoadTask(uint64_t number, size_t payload_bytes) {
  v1::TaskSpec task;
  task.set_id(absl::StrCat("t", number));
  task.set_contract(v1::CONTRACT_MODELNEW);
  // The oracle is a field that every task has; here it is all of the payload.
  task.mutable_oracle()->set_reference(std::string(payload_bytes, 'x'));
  task.set_spec("s");
  return task;
}

v1::JobSpec LoadSpec(const std::string& name, uint32_t weight) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.add_views()->add_views(v1::VIEW_SPEC);
  spec.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_REPLAY);
  spec.set_weight(weight);
  return spec;
}

absl::StatusOr<std::string> SubmitJob(v1::JobService::Stub& stub, const v1::JobSpec& spec,
                                      uint64_t first, uint64_t count, size_t payload_bytes) {
  grpc::ClientContext context;
  v1::SubmitResponse response;
  auto stream = stub.Submit(&context, &response);
  v1::SubmitRequest message;
  *message.mutable_spec() = spec;
  for (uint64_t sent = 0; sent < count;) {
    uint64_t end = std::min(count, sent + kTasksPerMessage);
    for (; sent < end; ++sent) *message.add_tasks() = LoadTask(first + sent, payload_bytes);
    if (!stream->Write(message)) break;
    message.Clear();
  }
  stream->WritesDone();
  grpc::Status status = stream->Finish();
  if (!status.ok()) return FromGrpc(status);
  return response.job().id();
}

absl::StatusOr<std::unique_ptr<LoadClient>> MakeSessionClient(const std::string& target, int number,
                                                              const std::string& job,
                                                              size_t payload_bytes) {
  return std::make_unique<SessionClient>(target, number, job, payload_bytes);
}

std::unique_ptr<LoadClient> MakeUnaryClient(const std::string& target, int number,
                                            size_t payload_bytes) {
  return std::make_unique<UnaryClient>(target, number, payload_bytes);
}

}  // namespace kmosaic
