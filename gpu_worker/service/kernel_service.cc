#include "gpu_worker/service/kernel_service.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/log/log.h"

namespace kmosaic {

grpc::Status KernelService::Compile(grpc::ServerContext* context, const v1::KernelRequest* request,
                                    v1::KernelResponse* response) {
  return Serve(context, *request, v1::ROLE_COMPILE, response);
}

grpc::Status KernelService::Verify(grpc::ServerContext* context, const v1::KernelRequest* request,
                                   v1::KernelResponse* response) {
  return Serve(context, *request, v1::ROLE_VERIFY, response);
}

grpc::Status KernelService::Benchmark(grpc::ServerContext* context,
                                      const v1::KernelRequest* request,
                                      v1::KernelResponse* response) {
  return Serve(context, *request, v1::ROLE_BENCHMARK, response);
}

grpc::Status KernelService::Evaluate(grpc::ServerContext* context,
                                     const v1::EvaluateRequest* request,
                                     v1::KernelResponse* response) {
  v1::Role last = request->last_stage();
  return Serve(context, request->request(), last == v1::ROLE_UNSPECIFIED ? v1::ROLE_VERIFY : last,
               response);
}

grpc::Status KernelService::Serve(grpc::ServerContext* context, const v1::KernelRequest& request,
                                  v1::Role last_stage, v1::KernelResponse* response) {
  auto refuse = [&](const absl::Status& status) {
    options_.metrics->refused.Add({{"code", absl::StatusCodeToString(status.code())}}).Increment();
    return ToGrpc(status);
  };
  if (options_.require_grants) {
    absl::Status granted =
        options_.grants->Check(request.grant(), last_stage, options_.clock->Wall());
    if (!granted.ok()) return refuse(granted);
  }
  ++busy_;
  absl::Cleanup done = [this] { --busy_; };
  Cancellation cancellation;
  CallWatch::Guard watched(
      options_.watch, [context] { return context->IsCancelled(); }, &cancellation);

  Slots* slots = last_stage == v1::ROLE_COMPILE     ? options_.compile_slots
                 : last_stage == v1::ROLE_BENCHMARK ? options_.benchmark_slots
                                                    : options_.verify_slots;
  auto permit = slots->Acquire([&] { return cancellation.cancelled(); });
  if (!permit.ok()) return refuse(permit.status());
  std::string role = RoleName(last_stage);
  auto& gauge = options_.metrics->busy.Add({{"role", role}});
  gauge.Increment();
  absl::Cleanup freed = [&gauge] { gauge.Decrement(); };

  auto report = options_.evaluator->Evaluate(request, last_stage, &cancellation);
  if (!report.ok()) return refuse(report.status());
  options_.metrics->evaluations.Add({{"stage", role}, {"verdict", VerdictName(report->verdict())}})
      .Increment();
  if (report->has_compile()) {
    options_.metrics->compile_seconds
        .Add({{"cached", report->compile().cached() ? "true" : "false"}}, SecondsBuckets())
        .Observe(report->compile().seconds());
  }
  if (report->has_verify()) {
    options_.metrics->verify_seconds.Add({}, SecondsBuckets()).Observe(report->verify().seconds());
  }
  if (cancellation.cancelled()) {
    // Its verdict, whatever it is, says nothing of this machine.
  } else if (report->verdict() == v1::VERDICT_INFRASTRUCTURE) {
    LogWarning("evaluation failed for a cause of this machine", {{"reason", report->reason()}});
    options_.on_evaluation(report->reason());
  } else if (last_stage != v1::ROLE_COMPILE) {
    options_.on_evaluation(std::nullopt);
  }
  *response->mutable_report() = *std::move(report);
  return grpc::Status::OK;
}

}  // namespace kmosaic
