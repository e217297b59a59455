// JobService and RunnerService over a real connection.
#include <catch2/catch.hpp>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/unit/queue/await.h"
#include "tests/unit/queue/served.h"

namespace kmosaic {
namespace {

std::vector<v1::SubmitRequest> InPieces(const JobShape& shape) {
  v1::SubmitRequest whole = MakeSubmit(shape);
  std::vector<v1::SubmitRequest> pieces(1, whole);
  pieces[0].clear_tasks();
  pieces[0].set_total_tasks(shape.tasks);
  for (const v1::TaskSpec& task : whole.tasks()) *pieces.emplace_back().add_tasks() = task;
  return pieces;
}

TEST_CASE("a job goes from Submit to its last event over gRPC") {
  Served served;
  v1::SubmitResponse submitted;
  REQUIRE(served.Submit(InPieces({.tasks = 3}), &submitted).ok());
  std::string id = submitted.job().id();
  CHECK(submitted.job().counts().total() == 3);
  CHECK(served.Get(id).unsatisfiable() == "no worker");

  grpc::ClientContext watching;
  v1::WatchJobRequest watch;
  watch.set_id(id);
  auto events = served.jobs->Watch(&watching, watch);
  v1::JobEvent event;
  uint64_t seq = 0;
  for (int item = 0; item < 3; ++item) {
    v1::Lease lease = served.LeaseOne();
    CHECK(lease.task().id() == "task" + std::to_string(item));
    v1::RecordStepResponse recorded;
    REQUIRE(
        served.Call(&v1::RunnerService::Stub::RecordStep, ReplyStep(lease.token(), 0), &recorded)
            .ok());
    REQUIRE(
        served.Call(&v1::RunnerService::Stub::RecordStep, ResultStep(lease.token(), 1), &recorded)
            .ok());
    // Events come while the job runs.
    REQUIRE(events->Read(&event));
    CHECK(event.seq() == ++seq);
    v1::CompleteResponse completed;
    REQUIRE(served.Call(&v1::RunnerService::Stub::Complete, Completion(lease.token()), &completed)
                .ok());
  }
  while (events->Read(&event)) CHECK(event.seq() == ++seq);
  CHECK(events->Finish().ok());
  CHECK(seq == 1 + 3 * 4 + 1);
  CHECK(event.job_state() == v1::JOB_STATE_FINISHED);
  CHECK(event.counts().verified() == 3);

  // From the middle, of a job that is over.
  grpc::ClientContext again;
  watch.set_from_seq(10);
  auto rest = served.jobs->Watch(&again, watch);
  std::vector<uint64_t> seqs;
  while (rest->Read(&event)) seqs.push_back(event.seq());
  CHECK(rest->Finish().ok());
  CHECK(seqs == std::vector<uint64_t>{10, 11, 12, 13, 14});

  grpc::ClientContext detail_context;
  v1::ItemRequest item;
  item.mutable_id()->set_job(id);
  item.mutable_id()->set_number(1);
  v1::ItemDetail detail;
  REQUIRE(served.jobs->GetItem(&detail_context, item, &detail).ok());
  CHECK(detail.steps_size() == 2);
  CHECK(detail.task().id() == "task1");
  CHECK(detail.item().history_size() == 1);
}

TEST_CASE("a malformed job is INVALID_ARGUMENT with words, and nothing is made") {
  Served served;
  std::vector<v1::SubmitRequest> pieces = InPieces({.tasks = 3});
  pieces[2].mutable_tasks(0)->set_id("no good");
  v1::SubmitResponse response;
  grpc::Status status = served.Submit(pieces, &response);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().find("tasks[1].id") != std::string::npos);
  grpc::ClientContext context;
  v1::ListJobsResponse list;
  REQUIRE(served.jobs->List(&context, {}, &list).ok());
  CHECK(list.jobs().empty());
}

TEST_CASE("a submission that is cut off makes nothing") {
  Served served;
  std::vector<v1::SubmitRequest> pieces = InPieces({.tasks = 3});
  for (int round = 0; round < 20; ++round) {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    auto writer = served.jobs->Submit(&context, &response);
    REQUIRE(writer->Write(pieces[0]));
    REQUIRE(writer->Write(pieces[1]));
    context.TryCancel();
    CHECK(writer->Finish().error_code() == grpc::StatusCode::CANCELLED);
  }
  v1::SubmitResponse response;
  REQUIRE(served.Submit(pieces, &response).ok());
  grpc::ClientContext context;
  v1::ListJobsResponse list;
  REQUIRE(served.jobs->List(&context, {}, &list).ok());
  CHECK(list.jobs_size() == 1);
}

TEST_CASE("an open watch ends with its job, with a delete, or with its client") {
  Served served;
  std::string id = served.SubmitJob({.tasks = 2});
  v1::WatchJobRequest watch;
  watch.set_id(id);
  v1::JobEvent event;
  v1::JobRequest job;
  job.set_id(id);

  grpc::ClientContext leaving;
  auto left = served.jobs->Watch(&leaving, watch);
  REQUIRE(left->Read(&event));
  leaving.TryCancel();
  CHECK_FALSE(left->Read(&event));
  CHECK(left->Finish().error_code() == grpc::StatusCode::CANCELLED);

  grpc::ClientContext staying;
  auto stayed = served.jobs->Watch(&staying, watch);
  REQUIRE(stayed->Read(&event));
  SECTION("job") {
    grpc::ClientContext context;
    v1::Job answer;
    REQUIRE(served.jobs->Cancel(&context, job, &answer).ok());
    REQUIRE(stayed->Read(&event));
    CHECK(event.job_state() == v1::JOB_STATE_CANCELLED);
    CHECK_FALSE(stayed->Read(&event));
    CHECK(stayed->Finish().ok());
  }
  SECTION("delete") {
    grpc::ClientContext context;
    v1::Job answer;
    REQUIRE(served.jobs->Delete(&context, job, &answer).ok());
    CHECK_FALSE(stayed->Read(&event));
    CHECK(stayed->Finish().error_code() == grpc::StatusCode::NOT_FOUND);
  }
  SECTION("server") {
    served.StopServer();
    CHECK_FALSE(stayed->Read(&event));
    CHECK_FALSE(stayed->Finish().ok());
  }
}

TEST_CASE("items are listed page by page and by state") {
  Served served;
  std::string id = served.SubmitJob({.tasks = 25});
  v1::Lease lease = served.LeaseOne();
  v1::ListItemsRequest request;
  request.set_job(id);
  request.set_page_size(10);
  std::vector<uint32_t> numbers;
  do {
    grpc::ClientContext context;
    v1::ListItemsResponse page;
    REQUIRE(served.jobs->ListItems(&context, request, &page).ok());
    for (const v1::Item& item : page.items()) numbers.push_back(item.id().number());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  REQUIRE(numbers.size() == 25);
  for (uint32_t i = 0; i < 25; ++i) CHECK(numbers[i] == i);

  request.add_states(v1::ITEM_STATE_LEASED);
  grpc::ClientContext context;
  v1::ListItemsResponse leased;
  REQUIRE(served.jobs->ListItems(&context, request, &leased).ok());
  REQUIRE(leased.items_size() == 1);
  CHECK(leased.items(0).holder() == "runner");
}

void RegisterWorker(Placement& placement) {
  v1::WorkerSyncRequest worker;
  worker.set_worker("worker");
  worker.set_incarnation("1");
  worker.set_endpoint("127.0.0.1:1");
  worker.set_health(v1::WORKER_HEALTH_OK);
  (*worker.mutable_labels())["device"] = "emulated";
  worker.mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
  v1::RoleSlots& slots = *worker.add_slots();
  slots.set_role(v1::ROLE_VERIFY);
  slots.set_total(1);
  // It gets work from its second call on: the first one's reply brings the key of grants.
  // Twice: it gets work once it has the key of grants.
  placement.Sync(worker);
  placement.Sync(worker);
  // Twice: it gets work once it has the key of grants.
  placement.Sync(worker);
  placement.Sync(worker);
}

TEST_CASE("slots go to holders of current leases only") {
  Served served;
  RegisterWorker(served.placement());
  std::string id = served.SubmitJob({.tasks = 2});
  v1::Lease lease = served.LeaseOne();
  v1::AcquireSlotRequest request;
  request.set_runner("runner");
  *request.mutable_token() = lease.token();
  request.set_role(v1::ROLE_VERIFY);
  request.set_device(v1::DEVICE_KIND_EMULATED);
  request.mutable_wait()->set_seconds(30);

  v1::Slot slot;
  v1::AcquireSlotRequest bad = request;
  bad.clear_role();
  CHECK(served.Call(&v1::RunnerService::Stub::AcquireSlot, bad, &slot).error_code() ==
        grpc::StatusCode::INVALID_ARGUMENT);
  bad = request;
  bad.mutable_token()->set_attempt(7);
  CHECK(served.Call(&v1::RunnerService::Stub::AcquireSlot, bad, &slot).error_code() ==
        grpc::StatusCode::FAILED_PRECONDITION);

  REQUIRE(served.Call(&v1::RunnerService::Stub::AcquireSlot, request, &slot).ok());
  CHECK(slot.worker() == "worker");
  {
    // The only slot is taken; one who waits and leaves does not keep it afterwards.
    grpc::ClientContext impatient;
    SetDeadline(impatient, absl::Milliseconds(50));
    v1::Slot none;
    CHECK(served.runners->AcquireSlot(&impatient, request, &none).error_code() ==
          grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  v1::ReleaseSlotRequest release;
  release.set_id(slot.id());
  v1::ReleaseSlotResponse released;
  REQUIRE(served.Call(&v1::RunnerService::Stub::ReleaseSlot, release, &released).ok());
  REQUIRE(served.Call(&v1::RunnerService::Stub::ReleaseSlot, release, &released).ok());
  REQUIRE(served.Call(&v1::RunnerService::Stub::AcquireSlot, request, &slot).ok());
  release.set_id(slot.id());
  REQUIRE(served.Call(&v1::RunnerService::Stub::ReleaseSlot, release, &released).ok());

  grpc::ClientContext context;
  v1::JobRequest job;
  job.set_id(id);
  v1::Job cancelled;
  REQUIRE(served.jobs->Cancel(&context, job, &cancelled).ok());
  CHECK(served.Call(&v1::RunnerService::Stub::AcquireSlot, request, &slot).error_code() ==
        grpc::StatusCode::CANCELLED);
}

TEST_CASE("a runner that gave up waiting is not given work") {
  Served served;
  v1::RunnerSyncRequest request;
  request.set_runner("impatient");
  request.set_free(1);
  request.mutable_wait()->set_seconds(60);
  grpc::ClientContext context;
  SetDeadline(context, absl::Milliseconds(100));
  v1::RunnerSyncResponse response;
  CHECK(served.runners->Sync(&context, request, &response).error_code() ==
        grpc::StatusCode::DEADLINE_EXCEEDED);
  // The server hears of it a moment later; until then a new Sync of the same runner ends
  // the old one, which has the same effect.
  request.mutable_wait()->set_seconds(0);
  REQUIRE(served.Call(&v1::RunnerService::Stub::Sync, request, &response).ok());
  std::string id = served.SubmitJob({});
  CHECK(served.Get(id).counts().ready() == 1);
}

TEST_CASE("five hundred waiting runners need no thread each") {
  Served served;
  constexpr int kRunners = 500;
  struct Waiting {
    grpc::ClientContext context;
    v1::RunnerSyncRequest request;
    v1::RunnerSyncResponse response;
    Await<absl::Status> answer;
  };
  // Calls that are open when the test ends early use what they were given.
  struct All : std::vector<std::unique_ptr<Waiting>> {
    ~All() {
      for (auto& each : *this) each->context.TryCancel();
      for (auto& each : *this) static_cast<void>(each->answer.Get());
    }
  } all;
  for (int i = 0; i < kRunners; ++i) {
    Waiting& each = *all.emplace_back(std::make_unique<Waiting>());
    SetDeadline(each.context, absl::Minutes(1));
    each.request.set_runner("runner-" + std::to_string(i));
    each.request.set_free(1);
    each.request.mutable_wait()->set_seconds(60);
    served.runners->async()->Sync(
        &each.context, &each.request, &each.response,
        [done = each.answer.done()](grpc::Status status) { done(FromGrpc(status)); });
  }
  // All are answered with work, so all were waiting or came to it.
  std::filesystem::directory_iterator tasks("/proc/self/task");
  CHECK(std::distance(begin(tasks), end(tasks)) < 100);
  served.SubmitJob({.tasks = kRunners});
  int granted = 0;
  for (auto& each : all) {
    REQUIRE(each->answer.Get().ok());
    granted += each->response.granted_size();
  }
  CHECK(granted == kRunners);
}

}  // namespace
}  // namespace kmosaic
