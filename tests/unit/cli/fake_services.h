// In-process services with answers that a test decides.
#ifndef KMOSAIC_TESTS_UNIT_CLI_FAKE_SERVICES_H_
#define KMOSAIC_TESTS_UNIT_CLI_FAKE_SERVICES_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/server.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"
#include "kernelmosaic/v1/dataset.grpc.pb.h"
#include "kernelmosaic/v1/job.grpc.pb.h"
#include "kernelmosaic/v1/score.grpc.pb.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

// One job, whose items are all done once it is watched to its end.
class FakeJobService : public v1::JobService::Service {
 public:
  grpc::Status Submit(grpc::ServerContext*, grpc::ServerReader<v1::SubmitRequest>* reader,
                      v1::SubmitResponse* response) override {
    v1::SubmitRequest message;
    std::lock_guard lock(mutex);
    bool first = true;
    std::vector<v1::TaskSpec> received;
    std::string request_id;
    while (reader->Read(&message)) {
      if (std::exchange(first, false)) {
        request_id = message.request_id();
        total_tasks = message.total_tasks();
        *job.mutable_spec() = message.spec();
      }
      for (const auto& task : message.tasks()) received.push_back(task);
    }
    if (submit_failures > 0) {
      --submit_failures;
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "try again");
    }
    tasks = received;
    request_ids.push_back(request_id);
    *response->mutable_job() = job;
    return grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext*, const v1::JobRequest* request,
                   v1::Job* response) override {
    std::lock_guard lock(mutex);
    return Answer(request->id(), response);
  }

  grpc::Status List(grpc::ServerContext*, const v1::ListJobsRequest* request,
                    v1::ListJobsResponse* response) override {
    // Two pages.
    std::lock_guard lock(mutex);
    *response->add_jobs() = job;
    if (request->page_token().empty()) {
      response->set_next_page_token("2");
    } else {
      response->mutable_jobs(0)->set_id("job-second");
    }
    return grpc::Status::OK;
  }

  grpc::Status Pause(grpc::ServerContext*, const v1::JobRequest* request,
                     v1::Job* response) override {
    std::lock_guard lock(mutex);
    job.set_state(v1::JOB_STATE_PAUSED);
    return Answer(request->id(), response);
  }

  grpc::Status Delete(grpc::ServerContext*, const v1::JobRequest*, v1::Job*) override {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                        "2 conversations are running; cancel the job first");
  }

  grpc::Status Retry(grpc::ServerContext*, const v1::RetryJobRequest* request,
                     v1::RetryJobResponse* response) override {
    response->set_retried(static_cast<uint64_t>(request->states_size()) + 10);
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext*, const v1::WatchJobRequest* request,
                     grpc::ServerWriter<v1::JobEvent>* writer) override {
    std::vector<v1::JobEvent> to_send;
    bool cut = false;
    {
      std::lock_guard lock(mutex);
      watched_from.push_back(request->from_seq());
      for (const v1::JobEvent& event : events) {
        if (event.seq() < request->from_seq()) continue;
        to_send.push_back(event);
        if (watch_cuts > 0 && event.seq() == 1) {
          --watch_cuts;
          cut = true;
          break;
        }
      }
    }
    for (const auto& event : to_send) writer->Write(event);
    return cut ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down") : grpc::Status::OK;
  }

  grpc::Status ListItems(grpc::ServerContext*, const v1::ListItemsRequest*,
                         v1::ListItemsResponse* response) override {
    std::lock_guard lock(mutex);
    for (const auto& item : items) *response->add_items() = item;
    return grpc::Status::OK;
  }

  grpc::Status GetItem(grpc::ServerContext*, const v1::ItemRequest* request,
                       v1::ItemDetail* response) override {
    std::lock_guard lock(mutex);
    if (request->id().number() >= items.size())
      return {grpc::StatusCode::NOT_FOUND, "no such item"};
    *response = detail;
    *response->mutable_item() = items[request->id().number()];
    return grpc::Status::OK;
  }

  // One item about each of `names`; the flags say which are verified.
  void Finish(const std::vector<std::pair<std::string, bool>>& names) {
    std::lock_guard lock(mutex);
    job.set_id("job-1");
    job.mutable_spec()->set_name("demo");
    job.set_state(v1::JOB_STATE_FINISHED);
    v1::JobCounts& counts = *job.mutable_counts();
    for (const auto& [name, verified] : names) {
      v1::Item& item = items.emplace_back();
      item.mutable_id()->set_job("job-1");
      item.mutable_id()->set_number(static_cast<uint32_t>(items.size() - 1));
      item.set_task(name);
      item.mutable_views()->add_views(v1::VIEW_DESCRIPTION);
      item.set_state(v1::ITEM_STATE_DONE);
      item.mutable_result()->set_verified(verified);
      item.mutable_result()->set_verdict(verified ? v1::VERDICT_PASSED : v1::VERDICT_WRONG_OUTPUT);
      item.mutable_result()->set_stop_reason(verified ? v1::STOP_REASON_SOLVED
                                                      : v1::STOP_REASON_TURN_BUDGET);
      item.mutable_result()->set_turns(3);
      item.mutable_result()->mutable_usage()->set_prompt_tokens(1000);
      if (verified) item.mutable_result()->set_work_ratio(0.5);
      if (!verified) item.mutable_result()->set_reason("one element is off");
      counts.set_total(counts.total() + 1);
      counts.set_done(counts.done() + 1);
      counts.set_verified(counts.verified() + (verified ? 1 : 0));
      v1::JobEvent& event = events.emplace_back();
      event.set_seq(events.size());
      *event.mutable_item()->mutable_id() = item.id();
      event.mutable_item()->set_task(name);
      event.mutable_item()->set_from(v1::ITEM_STATE_LEASED);
      event.mutable_item()->set_to(v1::ITEM_STATE_DONE);
      *event.mutable_counts() = counts;
    }
    v1::JobEvent& end = events.emplace_back();
    end.set_seq(events.size());
    end.set_job_state(v1::JOB_STATE_FINISHED);
    *end.mutable_counts() = counts;
  }

  std::mutex mutex;
  v1::Job job;
  std::vector<v1::Item> items;
  v1::ItemDetail detail;
  std::vector<v1::JobEvent> events;
  std::vector<v1::TaskSpec> tasks;
  std::vector<std::string> request_ids;
  std::vector<uint64_t> watched_from;
  uint32_t total_tasks = 0;
  int submit_failures = 0;
  int watch_cuts = 0;

 private:
  grpc::Status Answer(const std::string& id, v1::Job* response) {
    if (id != job.id()) return {grpc::StatusCode::NOT_FOUND, "there is no job " + id};
    *response = job;
    return grpc::Status::OK;
  }
};

// Answers each candidate with what `judge` says, in reverse order by pairs.
class FakeScoreService : public v1::ScoreService::Service {
 public:
  grpc::Status Score(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ScoreResponse, v1::ScoreRequest>* stream) override {
    {
      std::lock_guard lock(mutex);
      ++streams;
    }
    std::vector<v1::ScoreResponse> held;
    auto flush = [&] {
      for (auto it = held.rbegin(); it != held.rend(); ++it) stream->Write(*it);
      held.clear();
    };
    v1::ScoreRequest request;
    while (stream->Read(&request)) {
      std::lock_guard lock(mutex);
      requests.push_back(request);
      if (cut_after > 0 && requests.size() == cut_after) {
        flush();
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down");
      }
      v1::ScoreResponse response;
      response.set_id(request.id());
      *response.mutable_report() = judge(request);
      held.push_back(response);
      if (held.size() == 2) flush();
    }
    flush();
    return grpc::Status::OK;
  }

  std::mutex mutex;
  std::function<v1::EvaluationReport(const v1::ScoreRequest&)> judge =
      [](const v1::ScoreRequest& request) {
        v1::EvaluationReport report;
        bool good = request.solution().source().find("good") != std::string::npos;
        report.set_verdict(good ? v1::VERDICT_PASSED : v1::VERDICT_WRONG_OUTPUT);
        report.set_reason(good ? "" : "one element is off");
        report.mutable_compile()->set_seconds(1.5);
        return report;
      };
  std::vector<v1::ScoreRequest> requests;
  int streams = 0;
  // The stream breaks off with this request, once; 0: never.
  size_t cut_after = 0;
};

class FakeDatasetService : public v1::DatasetService::Service {
 public:
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* wanted,
                      grpc::ServerWriter<v1::ExportResponse>* writer) override {
    request = *wanted;
    for (const auto& response : responses) writer->Write(response);
    return status;
  }

  v1::ExportRequest request;
  std::vector<v1::ExportResponse> responses;
  grpc::Status status;
};

class FakeAdminService : public v1::AdminService::Service {
 public:
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::Server* server) override {
    server->set_version("9.9.9");
    server->set_http_endpoint("127.0.0.1:7");
    return grpc::Status::OK;
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    std::lock_guard lock(mutex);
    *response = fleet;
    return grpc::Status::OK;
  }
  grpc::Status DrainWorker(grpc::ServerContext*, const v1::DrainWorkerRequest* wanted,
                           v1::DrainWorkerResponse* response) override {
    if (wanted->id() != "worker-0")
      return {grpc::StatusCode::NOT_FOUND, "there is no worker " + wanted->id()};
    drained = wanted->drain();
    response->mutable_worker()->set_id(wanted->id());
    return grpc::Status::OK;
  }

  // Of `fleet` where a test changes it while it is asked for.
  std::mutex mutex;
  v1::ListWorkersResponse fleet;
  bool drained = false;
};

// All four on a port of their own.
struct FakeCoordinator {
  FakeJobService jobs;
  FakeScoreService score;
  FakeDatasetService dataset;
  FakeAdminService admin;
  std::unique_ptr<RpcServer> server;

  FakeCoordinator() {
    RpcServer::Options options;
    options.services = {&jobs, &score, &dataset, &admin};
    server = *RpcServer::Start(options);
  }
  const std::string& target() const { return server->target(); }
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_CLI_FAKE_SERVICES_H_
