// A worker whose verdicts follow from the solution's text.
#ifndef KMOSAIC_TESTS_UNIT_AGENT_RUNNER_FAKE_WORKER_H_
#define KMOSAIC_TESTS_UNIT_AGENT_RUNNER_FAKE_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/base/enum_names.h"
#include "common/rpc/server.h"
#include "kernelmosaic/v1/kernel.grpc.pb.h"

namespace kmosaic {

// A comment "# VERDICT" in a solution is what it gets ("# PASSED 60" passes with work of
// cost 60); compile verdicts come from Compile. Serves while it lives.
class FakeWorker : public v1::KernelService::Service {
 public:
  FakeWorker() {
    RpcServer::Options options;
    options.services = {this};
    auto server = RpcServer::Start(options);
    if (!server.ok()) throw std::runtime_error(std::string(server.status().message()));
    server_ = *std::move(server);
  }

  const std::string& target() const { return server_->target(); }

  // INFRASTRUCTURE in every report.
  std::atomic<bool> sick = false;
  // A status instead of any report; OK means a report.
  std::atomic<grpc::StatusCode> refuses = grpc::StatusCode::OK;
  std::atomic<int> calls = 0;
  // Called in each Verify before it answers.
  std::function<void()> during_verify;

  grpc::Status Compile(grpc::ServerContext*, const v1::KernelRequest* request,
                       v1::KernelResponse* response) override {
    return Answer(v1::ROLE_COMPILE, *request, response);
  }
  grpc::Status Verify(grpc::ServerContext*, const v1::KernelRequest* request,
                      v1::KernelResponse* response) override {
    if (during_verify) during_verify();
    return Answer(v1::ROLE_VERIFY, *request, response);
  }
  grpc::Status Benchmark(grpc::ServerContext*, const v1::KernelRequest* request,
                         v1::KernelResponse* response) override {
    grpc::Status status = Answer(v1::ROLE_BENCHMARK, *request, response);
    response->mutable_report()->mutable_benchmark()->set_median_us(10);
    response->mutable_report()->mutable_benchmark()->set_speedup(2);
    return status;
  }

 private:
  grpc::Status Answer(v1::Role role, const v1::KernelRequest& request,
                      v1::KernelResponse* response) {
    ++calls;
    if (refuses != grpc::StatusCode::OK) return {refuses, "refused"};
    if (request.grant() != "grant of " + RoleName(role)) {
      return {grpc::StatusCode::PERMISSION_DENIED, "no grant"};
    }
    v1::EvaluationReport& report = *response->mutable_report();
    report.set_verdict(sick ? v1::VERDICT_INFRASTRUCTURE : VerdictOf(request.solution().source()));
    report.set_reason(sick ? "disk full" : "as scripted");
    bool compile_failed = report.verdict() >= v1::VERDICT_COMPILE_ERROR &&
                          report.verdict() <= v1::VERDICT_COMPILE_RESOURCES;
    report.mutable_device()->set_kind(request.options().device());
    report.mutable_compile()->set_abi("light");
    report.mutable_compile()->set_cached(role != v1::ROLE_COMPILE);
    if (role == v1::ROLE_COMPILE && !compile_failed && !sick) {
      report.set_verdict(v1::VERDICT_PASSED);
    }
    size_t cost = request.solution().source().find("# PASSED ");
    if (role == v1::ROLE_VERIFY && cost != std::string::npos) {
      report.mutable_work()->set_cost(std::stod(request.solution().source().substr(cost + 9)));
    }
    return grpc::Status::OK;
  }

  static v1::Verdict VerdictOf(const std::string& source) {
    size_t at = source.find("# ");
    if (at == std::string::npos) return v1::VERDICT_INFRASTRUCTURE;
    std::string name = source.substr(at + 2, source.find_first_of(" \n", at + 2) - at - 2);
    return ParseVerdict(name).value_or(v1::VERDICT_PASSED);
  }

  std::unique_ptr<RpcServer> server_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_AGENT_RUNNER_FAKE_WORKER_H_
