#include "coordinator/server.h"

#include <httplib.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/rpc/channel.h"
#include "common/rpc/grant.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"
#include "kernelmosaic/v1/blob.grpc.pb.h"
#include "kernelmosaic/v1/dataset.grpc.pb.h"
#include "kernelmosaic/v1/job.grpc.pb.h"
#include "kernelmosaic/v1/runner.grpc.pb.h"
#include "kernelmosaic/v1/worker.grpc.pb.h"
#include "tests/testing/temp_dir.h"

namespace kmosaic {
namespace {

class Coordinator {
 public:
  explicit Coordinator(CoordinatorServer::Options with = {}) : options(std::move(with)) { Start(); }

  void Start() {
    options.data_dir = directory.path() + "/data";
    options.grace = absl::ZeroDuration();
    auto started = CoordinatorServer::Start(options, clock);
    INFO(started.status().ToString());
    REQUIRE(started.ok());
    server = *std::move(started);
    channel = MakeChannel(server->target());
  }

  template <typename Service>
  auto Stub() {
    return Service::NewStub(channel);
  }

  std::string HttpGet(const std::string& path) {
    httplib::Client client("http://" + server->http_address());
    auto result = client.Get(path.c_str());
    REQUIRE(result);
    return result->body;
  }

  v1::Job Submit(uint32_t samples) {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    auto writer = Stub<v1::JobService>()->Submit(&context, &response);
    v1::SubmitRequest request;
    request.mutable_spec()->set_name("demo");
    request.mutable_spec()->set_kind("generate");
    request.mutable_spec()->set_samples(samples);
    request.mutable_spec()->add_views()->add_views(v1::VIEW_DESCRIPTION);
    request.mutable_spec()->mutable_endpoint()->set_name("replay");
    request.mutable_spec()->mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_REPLAY);
    request.mutable_spec()->mutable_endpoint()->set_recordings("{}");
    request.mutable_spec()->mutable_evaluation()->set_device(v1::DEVICE_KIND_EMULATED);
    request.mutable_spec()->set_weight(1);
    request.mutable_spec()->set_max_attempts(3);
    request.set_total_tasks(1);
    v1::TaskSpec* task = request.add_tasks();
    task->set_id("row-softmax");
    task->set_title("Softmax");
    task->set_family("softmax");
    task->set_description("Compute softmax.");
    task->mutable_oracle()->set_reference("class Model: pass");
    task->set_contract(v1::CONTRACT_MODELNEW);
    writer->Write(request);
    writer->WritesDone();
    grpc::Status status = writer->Finish();
    INFO(status.error_message());
    REQUIRE(status.ok());
    return response.job();
  }

  v1::WorkerSyncResponse SyncWorker() {
    v1::WorkerSyncRequest request;
    request.set_worker("w1");
    request.set_incarnation("first");
    request.set_endpoint("127.0.0.1:1");
    request.set_http_endpoint("127.0.0.1:2");
    request.mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
    v1::RoleSlots* slots = request.add_slots();
    slots->set_role(v1::ROLE_VERIFY);
    slots->set_total(1);
    v1::WorkerSyncResponse response;
    // With the first it introduces itself, from the second on it gets work.
    for (int i = 0; i < 2; ++i) {
      grpc::ClientContext context;
      REQUIRE(Stub<v1::WorkerRegistry>()->Sync(&context, request, &response).ok());
    }
    return response;
  }

  // Leases one item.
  v1::Lease TakeLease(const std::string& runner = "r1") {
    grpc::ClientContext context;
    v1::RunnerSyncRequest request;
    request.set_runner(runner);
    request.set_free(1);
    request.mutable_wait()->set_seconds(10);
    request.set_http_endpoint("127.0.0.1:3");
    v1::RunnerSyncResponse response;
    REQUIRE(Stub<v1::RunnerService>()->Sync(&context, request, &response).ok());
    REQUIRE(response.granted_size() == 1);
    return response.granted(0);
  }

  void Record(const v1::LeaseToken& token, const v1::Step& step) {
    grpc::ClientContext context;
    v1::RecordStepRequest request;
    *request.mutable_token() = token;
    *request.mutable_step() = step;
    v1::RecordStepResponse response;
    grpc::Status status = Stub<v1::RunnerService>()->RecordStep(&context, request, &response);
    INFO(status.error_message());
    REQUIRE(status.ok());
  }

  // A conversation of one turn that solves the item.
  void Solve(const v1::LeaseToken& token) {
    v1::Step reply;
    reply.set_number(0);
    v1::ChatMessage* message = reply.mutable_reply()->add_added();
    message->set_role(v1::CHAT_ROLE_USER);
    message->set_content("Compute softmax.");
    reply.mutable_reply()->set_stage(v1::STAGE_IMPLEMENT);
    reply.mutable_reply()->set_content("```python\nclass ModelNew: pass\n```");
    Record(token, reply);
    v1::Step result;
    result.set_number(1);
    v1::TurnResult* turn = result.mutable_result();
    turn->mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
    turn->mutable_solution()->set_source("class ModelNew: pass\n");
    turn->mutable_report()->set_verdict(v1::VERDICT_PASSED);
    turn->mutable_report()->mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
    turn->set_best(true);
    Record(token, result);
    grpc::ClientContext context;
    v1::CompleteRequest request;
    *request.mutable_token() = token;
    request.mutable_result()->set_verified(true);
    request.mutable_result()->set_best_step(1);
    request.mutable_result()->set_stop_reason(v1::STOP_REASON_SOLVED);
    request.mutable_result()->set_verdict(v1::VERDICT_PASSED);
    request.mutable_result()->set_turns(1);
    v1::CompleteResponse response;
    grpc::Status status = Stub<v1::RunnerService>()->Complete(&context, request, &response);
    INFO(status.error_message());
    REQUIRE(status.ok());
  }

  v1::Slot AcquireSlot(const v1::LeaseToken& token) {
    v1::AcquireSlotRequest request;
    request.set_runner("r1");
    *request.mutable_token() = token;
    request.set_role(v1::ROLE_VERIFY);
    request.set_device(v1::DEVICE_KIND_EMULATED);
    request.mutable_wait()->set_seconds(10);
    v1::Slot slot;
    grpc::ClientContext context;
    grpc::Status status = Stub<v1::RunnerService>()->AcquireSlot(&context, request, &slot);
    INFO(status.error_message());
    REQUIRE(status.ok());
    return slot;
  }

  struct Exported {
    std::vector<v1::ExportRow> rows;
    v1::ExportSummary summary;
    grpc::Status status;
  };
  Exported Export(const v1::ExportRequest& request) {
    grpc::ClientContext context;
    auto reader = Stub<v1::DatasetService>()->Export(&context, request);
    Exported exported;
    v1::ExportResponse response;
    while (reader->Read(&response)) {
      if (response.has_row()) exported.rows.push_back(response.row());
      if (response.has_summary()) exported.summary = response.summary();
    }
    exported.status = reader->Finish();
    return exported;
  }

  CoordinatorServer::Options options;
  TempDir directory;
  SystemClock clock;
  std::unique_ptr<CoordinatorServer> server;
  std::shared_ptr<grpc::Channel> channel;
};

TEST_CASE("a job goes from Submit to an exported row and outlives a restart") {
  Coordinator coordinator;
  v1::Job job = coordinator.Submit(2);
  v1::Lease lease = coordinator.TakeLease();
  CHECK(lease.task().id() == "row-softmax");
  coordinator.Solve(lease.token());

  coordinator.server = nullptr;
  coordinator.Start();
  v1::ExportRequest request;
  request.add_jobs(job.id());
  request.set_format(v1::EXPORT_FORMAT_TRAJECTORY);
  request.set_include_emulated(true);
  Coordinator::Exported exported = coordinator.Export(request);
  REQUIRE(exported.status.ok());
  REQUIRE(exported.rows.size() == 1);
  nlohmann::json row = nlohmann::json::parse(exported.rows[0].json());
  CHECK(row["schema"] == "kernelmosaic/1");
  CHECK(row["verified"] == true);
  CHECK(row["emulated"] == true);
  CHECK(row["split"] == exported.rows[0].split());
  CHECK(exported.summary.items() == 2);
  CHECK(exported.summary.rows() == 1);
  CHECK(exported.summary.dropped().at("unfinished") == 1);

  request.set_format(v1::EXPORT_FORMAT_DIRECT);
  exported = coordinator.Export(request);
  REQUIRE(exported.rows.size() == 1);
  CHECK(nlohmann::json::parse(exported.rows[0].json())["messages"][1]["content"] ==
        "```python\nclass ModelNew: pass\n```\n");

  request.set_include_emulated(false);
  exported = coordinator.Export(request);
  CHECK(exported.rows.empty());
  CHECK(exported.summary.dropped().at("emulated") == 1);
}

TEST_CASE("an export of a job that is not there is NOT_FOUND") {
  Coordinator coordinator;
  v1::ExportRequest request;
  request.add_jobs("job-ghost");
  request.set_format(v1::EXPORT_FORMAT_DIRECT);
  CHECK(coordinator.Export(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("a leased item gets a slot of a registered worker") {
  Coordinator coordinator;
  coordinator.Submit(1);
  v1::WorkerSyncResponse told = coordinator.SyncWorker();
  v1::Slot slot = coordinator.AcquireSlot(coordinator.TakeLease().token());
  CHECK(slot.worker() == "w1");
  CHECK(VerifyGrant(slot.grant(), told.grant_key(), absl::Now()).ok());

  v1::ListWorkersResponse listed;
  {
    grpc::ClientContext context;
    REQUIRE(coordinator.Stub<v1::AdminService>()->ListWorkers(&context, {}, &listed).ok());
  }
  REQUIRE(listed.workers_size() == 1);
  CHECK(listed.workers(0).slots(0).used() == 1);
  REQUIRE(listed.runners_size() == 1);
  CHECK(listed.runners(0).id() == "r1");
}

TEST_CASE("a runner that is gone leaves its slot to others") {
  CoordinatorServer::Options options;
  options.queue.lease_ttl = absl::Seconds(1);
  Coordinator coordinator(options);
  coordinator.Submit(1);
  coordinator.SyncWorker();
  v1::Slot first = coordinator.AcquireSlot(coordinator.TakeLease("r1").token());
  // r1 is never heard of again; its lease ends, r2 gets the item, and then the only slot.
  v1::Slot second = coordinator.AcquireSlot(coordinator.TakeLease("r2").token());
  CHECK(second.id() != first.id());
}

TEST_CASE("a job says when no worker can serve it") {
  Coordinator coordinator;
  v1::Job job = coordinator.Submit(1);
  grpc::ClientContext context;
  v1::JobRequest request;
  request.set_id(job.id());
  REQUIRE(coordinator.Stub<v1::JobService>()->Get(&context, request, &job).ok());
  CHECK_THAT(job.unsatisfiable(), Catch::Contains("no worker is registered"));
}

TEST_CASE("a worker must say who and where it is") {
  Coordinator coordinator;
  grpc::ClientContext context;
  v1::WorkerSyncRequest request;
  request.set_worker("w1");
  v1::WorkerSyncResponse response;
  grpc::Status status = coordinator.Stub<v1::WorkerRegistry>()->Sync(&context, request, &response);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message() == "incarnation is empty");
}

TEST_CASE("drain orders reach the worker with its next sync, also after a restart") {
  Coordinator coordinator;
  coordinator.SyncWorker();
  auto drain = [&](bool ordered) {
    v1::DrainWorkerRequest request;
    request.set_id("w1");
    request.set_drain(ordered);
    v1::DrainWorkerResponse response;
    grpc::ClientContext context;
    REQUIRE(coordinator.Stub<v1::AdminService>()->DrainWorker(&context, request, &response).ok());
    CHECK((response.worker().state() == v1::WORKER_STATE_DRAINING) == ordered);
  };
  drain(true);
  CHECK(coordinator.SyncWorker().drain());
  coordinator.server.reset();
  coordinator.Start();
  CHECK(coordinator.SyncWorker().drain());
  drain(false);
  coordinator.server.reset();
  coordinator.Start();
  CHECK_FALSE(coordinator.SyncWorker().drain());
}

TEST_CASE("calls that change something are in the audit log") {
  Coordinator coordinator;
  v1::Job job = coordinator.Submit(1);
  {
    grpc::ClientContext context;
    v1::JobRequest request;
    request.set_id(job.id());
    REQUIRE(coordinator.Stub<v1::JobService>()->Cancel(&context, request, &job).ok());
  }
  {
    grpc::ClientContext context;
    v1::DrainWorkerRequest request;
    request.set_id("nobody");
    v1::DrainWorkerResponse response;
    CHECK_FALSE(
        coordinator.Stub<v1::AdminService>()->DrainWorker(&context, request, &response).ok());
  }
  std::ifstream file(coordinator.options.data_dir + "/audit.jsonl");
  std::vector<std::string> seen;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    CHECK(entry["peer"].get<std::string>().find("127.0.0.1") != std::string::npos);
    seen.push_back(entry["verb"].get<std::string>() + " " + entry["subject"].get<std::string>() +
                   " " + entry["outcome"].get<std::string>());
  }
  CHECK(seen == std::vector<std::string>{"submit " + job.id() + " OK", "cancel " + job.id() + " OK",
                                         "undrain nobody NOT_FOUND"});
}

TEST_CASE("blobs travel in pieces") {
  Coordinator coordinator;
  std::string bytes(3 << 20, 'b');
  std::string digest = Sha256Hex(bytes);
  auto stub = coordinator.Stub<v1::BlobService>();
  {
    grpc::ClientContext context;
    v1::PutBlobResponse response;
    auto writer = stub->Put(&context, &response);
    v1::PutBlobRequest request;
    request.set_digest(digest);
    request.set_chunk(bytes.substr(0, 1 << 20));
    writer->Write(request);
    request.clear_digest();
    request.set_chunk(bytes.substr(1 << 20));
    writer->Write(request);
    writer->WritesDone();
    REQUIRE(writer->Finish().ok());
    CHECK(response.bytes() == bytes.size());
  }
  grpc::ClientContext context;
  v1::GetBlobRequest request;
  request.set_digest(digest);
  auto reader = stub->Get(&context, request);
  std::string got;
  v1::GetBlobResponse response;
  while (reader->Read(&response)) got += response.chunk();
  CHECK(reader->Finish().ok());
  CHECK(got == bytes);
}

TEST_CASE("the HTTP port serves metrics, health and the live fleet") {
  Coordinator coordinator;
  coordinator.SyncWorker();
  coordinator.Submit(1);
  coordinator.TakeLease();
  nlohmann::json fleet = nlohmann::json::parse(coordinator.HttpGet("/sd/prometheus"));
  REQUIRE(fleet.size() == 3);
  CHECK(fleet[0]["targets"][0] == coordinator.server->http_address());
  CHECK(fleet[1]["targets"][0] == "127.0.0.1:2");
  CHECK(fleet[2]["targets"][0] == "127.0.0.1:3");
  CHECK(coordinator.HttpGet("/healthz") == "ok\n");
  CHECK_THAT(coordinator.HttpGet("/metrics"), Catch::Contains("kmosaic_workers_wanted"));
  coordinator.server->StopServing();
  CHECK(coordinator.HttpGet("/healthz") == "not healthy\n");
}

TEST_CASE("what is in the way of a start is named") {
  Coordinator coordinator;
  CoordinatorServer::Options options;
  std::string wanted;
  SECTION("no directory") { wanted = "--data-dir"; }
  SECTION("a directory in use") {
    options.data_dir = coordinator.directory.path() + "/data";
    wanted = "in use";
  }
  SECTION("a directory that cannot be made") {
    options.data_dir = "/proc/kmosaic";
    wanted = "/proc/kmosaic";
  }
  SECTION("an HTTP address that is taken") {
    options.data_dir = coordinator.directory.path() + "/other";
    options.http_listen = coordinator.server->http_address();
    wanted = options.http_listen;
  }
  SECTION("a gRPC address that is taken") {
    options.data_dir = coordinator.directory.path() + "/other";
    options.listen = coordinator.server->target();
    wanted = options.listen;
  }
  auto second = CoordinatorServer::Start(options, coordinator.clock);
  REQUIRE_FALSE(second.ok());
  CHECK_THAT(std::string(second.status().message()), Catch::Contains(wanted));
}

}  // namespace
}  // namespace kmosaic
