#include "coordinator/service/score_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

// A wait for busy workers is begun anew after this long.
constexpr absl::Duration kWait = absl::Minutes(1);

v1::Role RoleOf(const v1::ScoreOptions& options) {
  return options.last_stage() == v1::ROLE_UNSPECIFIED ? v1::ROLE_VERIFY : options.last_stage();
}

// The request itself is wrong; no other worker will like it better.
bool BadRequest(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
         status.error_code() == grpc::StatusCode::OUT_OF_RANGE;
}

}  // namespace

ScoreCall::ScoreCall(const ScoreCallContext& context, std::string stream, v1::ScoreRequest request,
                     Done done)
    : context_(context),
      stream_(std::move(stream)),
      request_(std::move(request)),
      done_(std::move(done)),
      started_(context.clock.Steady()) {}

void ScoreCall::Cancel() {
  uint64_t ticket;
  std::shared_ptr<grpc::ClientContext> call;
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    ticket = ticket_;
    call = call_;
  }
  if (ticket != 0) context_.placement.Cancel(ticket);
  if (call != nullptr) call->TryCancel();
}

bool ScoreCall::Cancelled() {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

void ScoreCall::Acquire() {
  SlotRequest slot;
  slot.requirement = {
      RoleOf(request_.evaluation()),
      request_.evaluation().device(),
      {request_.evaluation().require().begin(), request_.evaluation().require().end()}};
  slot.group = stream_;
  slot.holder = stream_;
  slot.avoid = avoid_;
  slot.wait = kWait;
  uint64_t ticket = context_.placement.Acquire(
      std::move(slot), [self = shared_from_this()](absl::StatusOr<v1::Slot> granted) {
        self->OnSlot(std::move(granted));
      });
  bool cancelled;
  {
    // The answer may have come already; cancelling an old ticket is harmless.
    std::lock_guard lock(mutex_);
    ticket_ = ticket;
    cancelled = cancelled_;
  }
  if (cancelled) context_.placement.Cancel(ticket);
}

void ScoreCall::OnSlot(absl::StatusOr<v1::Slot> slot) {
  if (slot.ok()) {
    slot_ = *std::move(slot);
    if (Cancelled()) {
      context_.placement.Release(slot_.id());
      FinishWithInfrastructure("cancelled");
      return;
    }
    CallWorker();
    return;
  }
  if (Cancelled()) return FinishWithInfrastructure("cancelled");
  bool busy = absl::IsDeadlineExceeded(slot.status());
  bool patient = absl::IsUnavailable(slot.status()) &&
                 context_.clock.Steady() - started_ < context_.no_worker_patience;
  if (busy || patient) return Acquire();
  FinishWithInfrastructure(std::string(slot.status().message()));
}

void ScoreCall::CallWorker() {
  wire_request_.Clear();
  v1::KernelRequest& kernel = *wire_request_.mutable_request();
  kernel.set_grant(slot_.grant());
  *kernel.mutable_oracle() = request_.oracle();
  *kernel.mutable_solution() = request_.solution();
  kernel.mutable_options()->set_device(request_.evaluation().device());
  kernel.mutable_options()->set_scale(request_.evaluation().scale());
  kernel.mutable_options()->set_public_seeds(request_.evaluation().public_seeds());
  kernel.mutable_options()->set_secret_seeds(request_.evaluation().secret_seeds());
  kernel.mutable_options()->set_compile_baseline(request_.evaluation().compile_baseline());
  wire_request_.set_last_stage(RoleOf(request_.evaluation()));
  wire_response_.Clear();
  std::unique_ptr<v1::KernelService::Stub> stub =
      v1::KernelService::NewStub(context_.channels.Get(slot_.endpoint()));

  auto owned = std::make_shared<grpc::ClientContext>();
  grpc::ClientContext* call = owned.get();
  SetDeadline(*call, absl::Seconds(slot_.ttl().seconds()));
  bool cancelled;
  {
    // From here on call_ keeps the context, until OnReply.
    std::lock_guard lock(mutex_);
    call_ = std::move(owned);
    cancelled = cancelled_;
  }
  if (cancelled) call->TryCancel();
  stub->async()->Evaluate(
      call, &wire_request_, &wire_response_,
      [self = shared_from_this()](const grpc::Status& status) { self->OnReply(status); });
}

void ScoreCall::OnReply(const grpc::Status& status) {
  std::shared_ptr<grpc::ClientContext> call;
  {
    std::lock_guard lock(mutex_);
    call = std::move(call_);
  }
  // Before anybody hears of the end: who drops the last reference to a channel must not be
  // one of gRPC's own threads, which this is.
  call = nullptr;
  if (!status.ok()) {
    // Before the slot is free again, so that nobody else runs into it.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      context_.placement.Suspect(slot_.worker());
    }
    context_.placement.Release(slot_.id());
    if (Cancelled()) return FinishWithInfrastructure("cancelled");
    std::string why = absl::StrCat(slot_.worker(), ": ", FromGrpc(status).ToString());
    if (BadRequest(status)) {
      v1::EvaluationReport report;
      report.set_verdict(v1::VERDICT_INVALID_TASK);
      report.set_reason(status.error_message());
      return Finish(std::move(report));
    }
    return TryAgain(why, "worker_unreachable");
  }
  context_.placement.Release(slot_.id());
  if (wire_response_.report().verdict() != v1::VERDICT_INFRASTRUCTURE) {
    return Finish(std::move(*wire_response_.mutable_report()));
  }
  if (Cancelled()) return FinishWithInfrastructure("cancelled");
  last_report_ = wire_response_.report();
  TryAgain(absl::StrCat(slot_.worker(), ": ", last_report_.reason()), "infrastructure");
}

void ScoreCall::TryAgain(const std::string& why, const char* reason) {
  failures_.push_back(why);
  avoid_.insert(slot_.worker());
  if (failures_.size() >= context_.max_tries) {
    return FinishWithInfrastructure(
        absl::StrCat("tried ", failures_.size(), " times: ", absl::StrJoin(failures_, "; ")));
  }
  context_.metrics.retries.Add({{"reason", reason}}).Increment();
  Acquire();
}

void ScoreCall::FinishWithInfrastructure(const std::string& why) {
  v1::EvaluationReport report = last_report_;
  report.set_verdict(v1::VERDICT_INFRASTRUCTURE);
  report.set_reason(why);
  Finish(std::move(report));
}

void ScoreCall::Finish(v1::EvaluationReport report) {
  context_.metrics.answers.Add({{"verdict", VerdictName(report.verdict())}}).Increment();
  context_.metrics.seconds.Observe(absl::ToDoubleSeconds(context_.clock.Steady() - started_));
  done_(std::move(report));
}

}  // namespace kmosaic
