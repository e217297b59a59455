#include "agent_runner/evaluator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent_runner/proto_time.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"

namespace kmosaic {
namespace {

// Channels to workers that are gone are dropped when this many are kept.
constexpr size_t kMostChannels = 1024;

void Merge(v1::Role role, const v1::EvaluationReport& stage, v1::EvaluationReport* total) {
  if (role != v1::ROLE_BENCHMARK) {
    // What Verify says of the compilation is a cache hit; what Compile said stays.
    v1::CompileReport compile = total->compile();
    bool had_compile = total->has_compile();
    *total = stage;
    if (had_compile) *total->mutable_compile() = std::move(compile);
    return;
  }
  total->set_verdict(stage.verdict());
  if (stage.verdict() != v1::VERDICT_PASSED) total->set_reason(stage.reason());
  if (stage.has_benchmark()) *total->mutable_benchmark() = stage.benchmark();
  if (stage.has_device()) *total->mutable_device() = stage.device();
}

// Gives the slot back at the end of its scope.
class HeldSlot {
 public:
  HeldSlot(CoordinatorClient& coordinator, v1::Slot slot)
      : coordinator_(coordinator), slot_(std::move(slot)) {}
  ~HeldSlot() { coordinator_.ReleaseSlot(slot_.id()); }
  HeldSlot(const HeldSlot&) = delete;
  HeldSlot& operator=(const HeldSlot&) = delete;
  const v1::Slot& slot() const { return slot_; }

 private:
  CoordinatorClient& coordinator_;
  const v1::Slot slot_;
};

}  // namespace

Evaluator::Evaluator(CoordinatorClient& coordinator, const Clock& clock, RunnerMetrics& metrics,
                     Options options)
    : coordinator_(coordinator), clock_(clock), metrics_(metrics), options_(options) {}

EvaluationOutcome Evaluator::Evaluate(const EvaluationJob& job, CancelToken& cancel) {
  std::vector<v1::Role> roles = {v1::ROLE_COMPILE, v1::ROLE_VERIFY};
  if (job.benchmark) roles.push_back(v1::ROLE_BENCHMARK);
  v1::EvaluationReport total;
  for (v1::Role role : roles) {
    EvaluationOutcome outcome = RunStage(role, job, cancel);
    auto* report = std::get_if<v1::EvaluationReport>(&outcome);
    if (report == nullptr) return outcome;
    Merge(role, *report, &total);
    if (report->verdict() != v1::VERDICT_PASSED) break;
  }
  return total;
}

EvaluationOutcome Evaluator::RunStage(v1::Role role, const EvaluationJob& job,
                                      CancelToken& cancel) {
  v1::AcquireSlotRequest request;
  request.set_runner(job.runner);
  *request.mutable_token() = job.token;
  request.set_role(role);
  request.set_device(job.job->evaluation().device());
  *request.mutable_require() = job.job->evaluation().require();
  *request.mutable_wait() = ToProtoDuration(options_.slot_wait);

  std::optional<absl::Duration> give_up;  // steady time; from the first failure on
  int infrastructure = 0;
  EvaluationFailure failure;
  for (int attempt = 0;;) {
    if (cancel.cancelled()) return EvaluationCancelled{};
    absl::StatusOr<v1::Slot> slot = coordinator_.AcquireSlot(request, cancel);
    if (absl::IsDeadlineExceeded(slot.status())) continue;  // no slot was free; ask again
    if (slot.ok()) {
      absl::StatusOr<v1::EvaluationReport> report;
      std::string worker = slot->worker();
      {
        HeldSlot held(coordinator_, *std::move(slot));
        report = CallWorker(role, held.slot(), job, cancel);
      }
      if (report.ok() && report->verdict() != v1::VERDICT_INFRASTRUCTURE) return *report;
      if (cancel.cancelled()) return EvaluationCancelled{};
      if (absl::IsInvalidArgument(report.status())) {
        return EvaluationFailure{v1::FAILURE_CLASS_FINAL,
                                 absl::StrCat(RoleName(role), " on ", worker,
                                              " was refused: ", report.status().message()),
                                 worker, absl::ZeroDuration()};
      }
      if (report.ok()) ++infrastructure;
      failure.worker = worker;
      failure.reason = absl::StrCat(RoleName(role), " on ", worker, ": ",
                                    report.ok() ? report->reason() : report.status().ToString());
      if (std::find(request.avoid().begin(), request.avoid().end(), worker) ==
          request.avoid().end()) {
        request.add_avoid(worker);
      }
    } else {
      if (cancel.cancelled()) return EvaluationCancelled{};
      failure.reason = absl::StrCat("no ", RoleName(role), " slot: ", slot.status().message());
    }
    absl::Duration now = clock_.Steady();
    if (!give_up) give_up = now + options_.patience;
    absl::Duration delay = Backoff(attempt++, options_.backoff_base, options_.backoff_cap);
    if (now + delay >= *give_up || infrastructure >= options_.infrastructure_verdicts) {
      failure.delay = options_.backoff_cap;
      return failure;
    }
    metrics_.evaluation_retries.Increment();
    LogWarning("evaluation is tried again", {{"job", job.token.item().job()},
                                             {"item", job.token.item().number()},
                                             {"reason", failure.reason}});
    if (cancel.WaitFor(delay)) return EvaluationCancelled{};
  }
}

absl::StatusOr<v1::EvaluationReport> Evaluator::CallWorker(v1::Role role, const v1::Slot& slot,
                                                           const EvaluationJob& job,
                                                           CancelToken& cancel) {
  v1::KernelRequest request;
  request.set_grant(slot.grant());
  *request.mutable_oracle() = job.task->oracle();
  *request.mutable_solution() = *job.solution;
  v1::EvaluationOptions& options = *request.mutable_options();
  const v1::EvaluationSpec& spec = job.job->evaluation();
  options.set_device(spec.device());
  options.set_scale(spec.scale());
  options.set_public_seeds(spec.public_seeds());
  options.set_secret_seeds(spec.secret_seeds());
  options.set_compile_baseline(spec.compile_baseline());

  auto stub = v1::KernelService::NewStub(ChannelTo(slot.endpoint()));
  grpc::ClientContext context;
  absl::Duration timeout = slot.has_ttl() ? FromProtoDuration(slot.ttl()) : options_.call_timeout;
  SetDeadline(context, timeout);
  v1::KernelResponse response;
  CancelToken::Registration registration(cancel, [&context] { context.TryCancel(); });
  grpc::Status status;
  switch (role) {
    case v1::ROLE_COMPILE:
      status = stub->Compile(&context, request, &response);
      break;
    case v1::ROLE_BENCHMARK:
      status = stub->Benchmark(&context, request, &response);
      break;
    default:
      status = stub->Verify(&context, request, &response);
      break;
  }
  if (!status.ok()) return FromGrpc(status);
  if (response.report().verdict() == v1::VERDICT_UNSPECIFIED) {
    return absl::InternalError("the worker's report holds no verdict");
  }
  return response.report();
}

std::shared_ptr<grpc::Channel> Evaluator::ChannelTo(const std::string& endpoint) {
  std::lock_guard lock(mutex_);
  auto found = channels_.find(endpoint);
  if (found != channels_.end()) return found->second;
  if (channels_.size() >= kMostChannels) channels_.clear();
  return channels_[endpoint] = MakeChannel(endpoint);
}

}  // namespace kmosaic
