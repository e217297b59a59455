// JobService and RunnerService over a real connection, on a store in memory.
#ifndef KMOSAIC_TESTS_UNIT_QUEUE_SERVED_H_
#define KMOSAIC_TESTS_UNIT_QUEUE_SERVED_H_

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "coordinator/placement/placement.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/service/job_service.h"
#include "coordinator/service/runner_service.h"
#include "coordinator/store/memory_task_store.h"
#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {

// Jobs say of themselves that there is "no worker" for them.
class Served {
 public:
  Served()
      : placement_(PlacementTable::Options{}, clock_),
        queue_(StartQueue()),
        job_service_(
            {.limits = {}, .unsatisfiable = [](const v1::JobSpec&) { return "no worker"; }},
            *queue_),
        runner_service_(*queue_, placement_, lease_slots_, clock_) {
    auto server = RpcServer::Start({.listen = "127.0.0.1:0",
                                    .services = {&job_service_, &runner_service_},
                                    .grace = absl::Milliseconds(200)});
    REQUIRE(server.ok());
    server_ = *std::move(server);
    channel_ = MakeChannel(server_->target());
    jobs = v1::JobService::NewStub(channel_);
    runners = v1::RunnerService::NewStub(channel_);
  }

  Placement& placement() { return placement_; }
  void StopServer() { server_.reset(); }

  grpc::Status Submit(const std::vector<v1::SubmitRequest>& messages,
                      v1::SubmitResponse* response) {
    grpc::ClientContext context;
    SetDeadline(context, absl::Minutes(1));
    auto writer = jobs->Submit(&context, response);
    for (const v1::SubmitRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  std::string SubmitJob(const JobShape& shape) {
    v1::SubmitResponse response;
    REQUIRE(Submit({MakeSubmit(shape)}, &response).ok());
    return response.job().id();
  }

  template <typename Method, typename Request, typename Response>
  grpc::Status Call(Method method, const Request& request, Response* response) {
    grpc::ClientContext context;
    SetDeadline(context, absl::Minutes(1));
    return (runners.get()->*method)(&context, request, response);
  }

  v1::Lease LeaseOne(const std::string& runner = "runner") {
    v1::RunnerSyncRequest request;
    request.set_runner(runner);
    request.set_free(1);
    v1::RunnerSyncResponse response;
    REQUIRE(Call(&v1::RunnerService::Stub::Sync, request, &response).ok());
    REQUIRE(response.granted_size() == 1);
    return response.granted(0);
  }

  v1::Job Get(const std::string& id) {
    grpc::ClientContext context;
    v1::JobRequest request;
    request.set_id(id);
    v1::Job job;
    REQUIRE(jobs->Get(&context, request, &job).ok());
    return job;
  }

  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::RunnerService::Stub> runners;

 private:
  std::unique_ptr<TaskQueue> StartQueue() {
    auto queue = TaskQueue::Start({}, store_, clock_, queue_metrics_);
    REQUIRE(queue.ok());
    return *std::move(queue);
  }

  SystemClock clock_;
  MemoryTaskStore store_;
  Metrics metrics_{"test"};
  QueueMetrics queue_metrics_{metrics_};
  Placement placement_;
  std::unique_ptr<TaskQueue> queue_;
  LeaseSlots lease_slots_{*queue_, placement_};
  JobService job_service_;
  RunnerService runner_service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_QUEUE_SERVED_H_
