#include "coordinator/queue/task_queue.h"

#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/numbers.h"
#include "common/lifecycle/child_process.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/queue/reader.h"
#include "coordinator/store/memory_task_store.h"
#include "coordinator/store/rocksdb_task_store.h"
#include "tests/testing/fault_task_store.h"
#include "tests/testing/temp_directory.h"
#include "tests/unit/queue/await.h"
#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

using SyncAnswer = Await<absl::StatusOr<v1::RunnerSyncResponse>>;
using StatusAnswer = Await<absl::Status>;

v1::RunnerSyncRequest SyncRequest(const std::string& runner, uint32_t free, int wait_seconds = 0) {
  v1::RunnerSyncRequest request;
  request.set_runner(runner);
  request.set_free(free);
  request.mutable_wait()->set_seconds(wait_seconds);
  return request;
}

// A running queue over memory.
class Running {
 public:
  explicit Running(TaskQueueOptions options = {}) { Start(std::move(options)); }

  void Start(TaskQueueOptions options) {
    queue_.reset();
    store_.Reopen();
    auto started = TaskQueue::Start(options, store_, clock_, queue_metrics_);
    REQUIRE(started.ok());
    queue_ = *std::move(started);
  }

  TaskQueue& operator*() { return *queue_; }
  TaskQueue* operator->() { return queue_.get(); }
  void Stop() { queue_.reset(); }
  FakeClock& clock() { return clock_; }
  FaultTaskStore& store() { return store_; }
  std::string metrics() const { return metrics_.Serialize(); }

  absl::StatusOr<v1::SubmitResponse> Submit(const JobShape& shape) {
    Await<absl::StatusOr<v1::SubmitResponse>> answer;
    queue_->Submit(MakeSubmission(shape), answer.done());
    return answer.Get();
  }
  SyncAnswer Sync(const v1::RunnerSyncRequest& request) {
    SyncAnswer answer;
    last_ticket_ = queue_->Sync(request, answer.done());
    return answer;
  }
  uint64_t ticket() const { return last_ticket_; }
  absl::StatusOr<v1::Job> Get(const std::string& id) {
    Await<absl::StatusOr<v1::Job>> answer;
    queue_->GetJob(id, answer.done());
    return answer.Get();
  }
  absl::Status Complete(const v1::LeaseToken& token) {
    StatusAnswer answer;
    queue_->Complete(Completion(token), answer.done());
    return answer.Get();
  }
  // What was posted so far is judged and committed, and the clock was looked at.
  void Settle() {
    queue_->Wake();
    for (int i = 0; i < 2; ++i) static_cast<void>(Get("job-none"));
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    Settle();
  }

 private:
  FakeClock clock_;
  MemoryTaskStore memory_;
  FaultTaskStore store_{memory_};
  Metrics metrics_{"test"};
  QueueMetrics queue_metrics_{metrics_};
  std::unique_ptr<TaskQueue> queue_;
  std::atomic<uint64_t> last_ticket_{0};
};

TEST_CASE("a lease carries task, views, job and the conversation so far") {
  Running queue;
  auto job = queue.Submit({.tasks = 2});
  REQUIRE(job.ok());
  auto first = queue.Sync(SyncRequest("one", 1)).Get();
  REQUIRE(first.ok());
  REQUIRE(first->granted_size() == 1);
  const v1::Lease& lease = first->granted(0);
  CHECK(lease.task().id() == "task0");
  CHECK(lease.task().oracle().reference() == lease.task().reference());
  CHECK(lease.views().views(0) == v1::VIEW_REFERENCE);
  CHECK(lease.ttl().seconds() == 30);
  CHECK(first->next_sync().seconds() == 10);
  CHECK(first->jobs().at(job->job().id()).endpoint().recordings() == "{}\n");
  CHECK(lease.token().incarnation() == queue->identity().incarnation);

  StatusAnswer recorded;
  queue->RecordStep(ReplyStep(lease.token(), 0), recorded.done());
  REQUIRE(recorded.Get().ok());
  v1::ReleaseRequest release;
  *release.mutable_token() = lease.token();
  release.set_handed_back(true);
  StatusAnswer released;
  queue->Release(release, released.done());
  REQUIRE(released.Get().ok());
  auto second = queue.Sync(SyncRequest("two", 1)).Get();
  REQUIRE(second.ok());
  REQUIRE(second->granted_size() == 1);
  REQUIRE(second->granted(0).steps_size() == 1);
  CHECK(second->granted(0).steps(0).reply().content() == "reply");
}

TEST_CASE("a sync that waits is answered as soon as there is work") {
  Running queue;
  SyncAnswer waiting = queue.Sync(SyncRequest("runner", 1, 60));
  SyncAnswer no_room = queue.Sync(SyncRequest("full", 0, 60));
  queue.Settle();
  CHECK_FALSE(waiting.ready());
  REQUIRE(queue.Submit({}).ok());
  auto answer = waiting.Get();
  REQUIRE(answer.ok());
  CHECK(answer->granted_size() == 1);
  CHECK_FALSE(no_room.ready());
  // Waiting ends by itself, after the interval at the latest.
  queue.Advance(absl::Seconds(9));
  CHECK_FALSE(no_room.ready());
  queue.Advance(absl::Seconds(1));
  CHECK(no_room.Get()->granted_size() == 0);
}

TEST_CASE("a sync that waits hears of a cancel at once") {
  Running queue;
  std::string job = queue.Submit({})->job().id();
  v1::LeaseToken token = queue.Sync(SyncRequest("runner", 1)).Get()->granted(0).token();
  v1::RunnerSyncRequest request = SyncRequest("runner", 0, 60);
  *request.add_held() = token;
  SyncAnswer waiting = queue.Sync(request);
  queue.Settle();
  CHECK_FALSE(waiting.ready());
  Await<absl::StatusOr<v1::Job>> cancelled;
  queue->Cancel(job, cancelled.done());
  REQUIRE(cancelled.Get().ok());
  CHECK(waiting.Get()->held(0).order() == v1::LEASE_ORDER_CANCEL);
}

TEST_CASE("a later sync ends an earlier one, and one whose caller is gone gets nothing") {
  Running queue;
  SyncAnswer first = queue.Sync(SyncRequest("runner", 1, 60));
  SyncAnswer second = queue.Sync(SyncRequest("runner", 1, 60));
  CHECK(first.Get().status().code() == absl::StatusCode::kAborted);
  queue->CancelSync(queue.ticket());
  CHECK(second.Get().status().code() == absl::StatusCode::kCancelled);
  queue->CancelSync(queue.ticket());
  std::string job = queue.Submit({})->job().id();
  CHECK(queue.Get(job)->counts().ready() == 1);
}

TEST_CASE("leases expire by the clock alone") {
  Running queue;
  std::string job = queue.Submit({})->job().id();
  REQUIRE(queue.Sync(SyncRequest("runner", 1)).Get()->granted_size() == 1);
  for (int i = 0; i < 3; ++i) queue.Advance(absl::Seconds(9));
  CHECK(queue.Get(job)->counts().leased() == 1);
  queue.Advance(absl::Seconds(4));
  CHECK(queue.Get(job)->counts().leased() == 0);
  CHECK(queue.Get(job)->counts().ready() == 1);
  queue.Advance(absl::Seconds(1));
  CHECK(queue.metrics().find("kmosaic_lease_expired_total 1") != std::string::npos);
}

TEST_CASE("a coordinator that stood still gives every lease a full term") {
  Running queue;
  std::string job = queue.Submit({})->job().id();
  REQUIRE(queue.Sync(SyncRequest("runner", 1)).Get()->granted_size() == 1);
  queue.Settle();
  queue.Advance(absl::Minutes(10));
  CHECK(queue.Get(job)->counts().leased() == 1);
}

TEST_CASE("a large submission is written in pieces, and others are served in between") {
  TaskQueueOptions options;
  options.stage_bytes = 10;
  Running queue(options);
  Await<absl::StatusOr<v1::SubmitResponse>> large;
  queue->Submit(MakeSubmission({.tasks = 50, .request_id = "large"}), large.done());
  auto job = large.Get();
  REQUIRE(job.ok());
  CHECK(job->job().counts().total() == 50);
  // The first piece, the tasks, the job itself.
  CHECK(queue.store().writes() >= 3);
  CHECK(queue.Sync(SyncRequest("runner", 50)).Get()->granted_size() == 50);
  auto again = queue.Submit({.tasks = 50, .request_id = "large"});
  REQUIRE(again.ok());
  CHECK(again->existed());
  CHECK(again->job().id() == job->job().id());
  CHECK(queue.Submit({.tasks = 49, .request_id = "large"}).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("nothing is acknowledged after a failed write, and the owner is told") {
  auto fault = GENERATE(FaultTaskStore::Fault::kLost, FaultTaskStore::Fault::kApplied);
  Await<absl::Status> fatal;
  TaskQueueOptions options;
  options.on_fatal = fatal.done();
  Running queue(options);
  std::string kept = queue.Submit({.request_id = "kept"})->job().id();
  SyncAnswer waiting = queue.Sync(SyncRequest("full", 0, 60));
  queue.store().FailAfter(0, fault);
  CHECK(queue.Submit({.request_id = "open"}).status().code() == absl::StatusCode::kUnavailable);
  CHECK_FALSE(fatal.Get().ok());
  CHECK(waiting.Get().status().code() == absl::StatusCode::kUnavailable);
  CHECK(queue.Get(kept).status().code() == absl::StatusCode::kUnavailable);

  // The next start has what was acknowledged, and a repetition finds out about the rest.
  queue.Start({});
  CHECK(queue.Get(kept).ok());
  auto again = queue.Submit({.request_id = "open"});
  REQUIRE(again.ok());
  CHECK(again->existed() == (fault == FaultTaskStore::Fault::kApplied));
}

TEST_CASE("a queue that goes away answers what waits") {
  Running queue;
  SyncAnswer waiting = queue.Sync(SyncRequest("runner", 1, 60));
  queue.Settle();
  queue.Stop();
  CHECK(waiting.Get().status().code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("a full disk refuses jobs with a reason and is over by itself") {
  std::atomic<uint64_t> free{100};
  TaskQueueOptions options;
  options.disk = {.submit_bytes = 1000, .read_only_bytes = 10};
  options.free_bytes = [&]() -> absl::StatusOr<uint64_t> { return free.load(); };
  Running queue(options);
  auto refused = queue.Submit({});
  CHECK(refused.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(queue.metrics().find("kmosaic_store_write_state 1") != std::string::npos);
  free = 5000;
  queue.Advance(absl::Seconds(2));
  CHECK(queue.Submit({}).ok());
}

TEST_CASE("subscribers hear of events of their job until they leave") {
  Running queue;
  std::string job = queue.Submit({})->job().id();
  queue.Settle();
  std::atomic<int> heard{0};
  auto subscription = queue->Subscribe(job, [&] { ++heard; });
  REQUIRE(queue.Submit({}).ok());
  queue.Settle();
  CHECK(heard == 0);
  Await<absl::StatusOr<v1::Job>> paused;
  queue->Pause(job, paused.done());
  REQUIRE(paused.Get().ok());
  queue.Settle();
  CHECK(heard == 1);
  subscription.reset();
  Await<absl::StatusOr<v1::Job>> resumed;
  queue->Resume(job, resumed.done());
  REQUIRE(resumed.Get().ok());
  queue.Settle();
  CHECK(heard == 1);
}

TEST_CASE("many runners at once: every item is done once") {
  constexpr uint32_t kTasks = 400;
  Running queue;
  std::string job = queue.Submit({.tasks = kTasks})->job().id();
  std::mutex mutex;
  std::map<uint32_t, int> completions;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (;;) {
        auto answer = queue.Sync(SyncRequest("runner-" + std::to_string(t), 3)).Get();
        if (!answer.ok() || answer->granted().empty()) return;
        for (const v1::Lease& lease : answer->granted()) {
          if (!queue.Complete(lease.token()).ok()) return;
          std::lock_guard lock(mutex);
          ++completions[lease.token().item().number()];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(completions.size() == kTasks);
  for (const auto& [number, times] : completions) CHECK(times == 1);
  CHECK(queue.Get(job)->state() == v1::JOB_STATE_FINISHED);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("runners that were heard of are listed, and metrics tell what moved") {
  Running queue;
  REQUIRE(queue.Submit({}).ok());
  v1::LeaseToken token = queue.Sync(SyncRequest("one", 1)).Get()->granted(0).token();
  REQUIRE(queue.Complete(token).ok());
  CHECK(queue.Complete(token).ok());
  token.set_attempt(9);
  CHECK_FALSE(queue.Complete(token).ok());
  Await<absl::StatusOr<std::vector<v1::Runner>>> runners;
  queue->ListRunners(runners.done());
  REQUIRE(runners.Get()->size() == 1);
  queue.Advance(absl::Seconds(2));
  std::string text = queue.metrics();
  CHECK(text.find("kmosaic_task_transitions_total{from=\"leased\",to=\"done\"} 1") !=
        std::string::npos);
  CHECK(text.find("kmosaic_stale_token_rejections_total{verb=\"complete\"} 1") !=
        std::string::npos);
  CHECK(text.find("kmosaic_tasks{state=\"done\"} 1") != std::string::npos);
  CHECK(text.find("kmosaic_jobs{state=\"finished\"} 1") != std::string::npos);
}

TEST_CASE("a queue on disk goes on where it was") {
  TempDirectory directory;
  SystemClock clock;
  Metrics metrics("test");
  QueueMetrics queue_metrics(metrics);
  std::string job;
  v1::LeaseToken token;
  uint64_t epoch = 0;
  for (int start = 0; start < 2; ++start) {
    auto store = RocksDbTaskStore::Open(directory.path(), {});
    REQUIRE(store.ok());
    auto queue = TaskQueue::Start({}, **store, clock, queue_metrics);
    REQUIRE(queue.ok());
    if (start == 0) {
      epoch = (*queue)->identity().epoch;
      Await<absl::StatusOr<v1::SubmitResponse>> submitted;
      (*queue)->Submit(MakeSubmission({.tasks = 3}), submitted.done());
      job = submitted.Get()->job().id();
      SyncAnswer synced;
      (*queue)->Sync(SyncRequest("runner", 1), synced.done());
      token = synced.Get()->granted(0).token();
      StatusAnswer recorded;
      (*queue)->RecordStep(ReplyStep(token, 0), recorded.done());
      REQUIRE(recorded.Get().ok());
    } else {
      CHECK((*queue)->identity().epoch == epoch + 1);
      StatusAnswer recorded;
      (*queue)->RecordStep(ResultStep(token, 1), recorded.done());
      CHECK(recorded.Get().ok());
      StatusAnswer completed;
      (*queue)->Complete(Completion(token), completed.done());
      CHECK(completed.Get().ok());
      Await<absl::StatusOr<v1::Job>> got;
      (*queue)->GetJob(job, got.done());
      CHECK(got.Get()->counts().done() == 1);
      CHECK(got.Get()->counts().ready() == 2);
    }
    queue->reset();
    CHECK(FindContradiction(**store).empty());
  }
}

TEST_CASE("what a killed coordinator had acknowledged is there, and the rest is consistent") {
  TempDirectory directory;
  int64_t acked = 0;
  for (int round = 0; round < 4; ++round) {
    auto writer = ChildProcess::Start(
        {.argv = {KMOSAIC_QUEUE_WRITER, directory.path()}, .pipe_stdout = true});
    REQUIRE(writer.ok());
    for (int line = 0; line < 40 + 23 * round; ++line) {
      auto text = writer->ReadLine(absl::Seconds(60));
      REQUIRE(text.ok());
      REQUIRE(absl::SimpleAtoi(*text, &acked));
    }
    writer->Signal(SIGKILL);
    CHECK(writer->Wait(absl::Seconds(60)) == 128 + SIGKILL);

    auto store = RocksDbTaskStore::Open(directory.path(), {});
    REQUIRE(store.ok());
    std::string contradiction = FindContradiction(**store);
    INFO(contradiction);
    CHECK(contradiction.empty());
    // Each line is the number of the item whose completion was acknowledged; the writer
    // uses one job.
    v1::StoredJob job;
    REQUIRE(job.ParseFromString(*(*store)->Get(Family::kJob, keys::Job(1))));
    auto reader = JobReader::Open(**store, job.id());
    REQUIRE(reader.ok());
    CHECK(reader->ReadItem(static_cast<uint32_t>(acked), false)->state() == v1::ITEM_STATE_DONE);
    auto steps = reader->ReadSteps(static_cast<uint32_t>(acked));
    REQUIRE(steps.ok());
    CHECK(steps->size() == 2);
  }
}

}  // namespace
}  // namespace kmosaic
