// A queue of several shards: what callers see is what they see of one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "coordinator/queue/job_routes.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/queue/task_queue.h"
#include "coordinator/store/memory_task_store.h"
#include "tests/unit/queue/await.h"
#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

using SyncAnswer = Await<absl::StatusOr<v1::RunnerSyncResponse>>;

class Sharded {
 public:
  explicit Sharded(size_t shards = 3) {
    for (size_t i = 0; i < 4; ++i) stores_.push_back(std::make_unique<MemoryTaskStore>());
    Start(shards, shards);
  }

  void Start(size_t stores, size_t shards) {
    queue_.reset();
    std::vector<TaskStore*> used;
    for (size_t i = 0; i < stores; ++i) used.push_back(stores_[i].get());
    auto started = TaskQueue::Start({}, used, shards, clock_, queue_metrics_);
    REQUIRE(started.ok());
    queue_ = *std::move(started);
  }
  TaskQueue* operator->() { return queue_.get(); }
  void Stop() { queue_.reset(); }

  // A request id that leads to this shard.
  static std::string RequestFor(size_t shard, size_t shards, int number = 0) {
    JobRoutes routes(shards);
    for (;; ++number) {
      std::string id = absl::StrCat("request-", number);
      if (routes.ForSubmission(id, 0) == shard) return id;
    }
  }
  v1::SubmitResponse Submit(const JobShape& shape) {
    Await<absl::StatusOr<v1::SubmitResponse>> answer;
    queue_->Submit(MakeSubmission(shape), answer.done());
    auto response = answer.Get();
    REQUIRE(response.ok());
    return *response;
  }
  // A job on a shard.
  std::string SubmitTo(size_t shard, JobShape shape, size_t shards = 3) {
    shape.request_id = RequestFor(shard, shards);
    return Submit(shape).job().id();
  }
  size_t ShardOf(const std::string& job) {
    auto stores = queue_->stores();
    return static_cast<size_t>(std::find(stores.begin(), stores.end(), &queue_->StoreOf(job)) -
                               stores.begin());
  }
  static v1::RunnerSyncRequest Request(uint32_t free, int wait = 0,
                                       const std::vector<v1::LeaseToken>& held = {}) {
    v1::RunnerSyncRequest request;
    request.set_runner("runner");
    request.set_free(free);
    request.mutable_wait()->set_seconds(wait);
    for (const v1::LeaseToken& token : held) *request.add_held() = token;
    return request;
  }
  SyncAnswer Sync(const v1::RunnerSyncRequest& request) {
    SyncAnswer answer;
    ticket_ = queue_->Sync(request, answer.done());
    return answer;
  }
  uint64_t ticket() const { return ticket_; }
  absl::StatusOr<v1::Job> Get(const std::string& id) {
    Await<absl::StatusOr<v1::Job>> answer;
    queue_->GetJob(id, answer.done());
    return answer.Get();
  }
  std::vector<std::string> List(uint32_t page_size) {
    std::vector<std::string> ids;
    v1::ListJobsRequest request;
    request.set_page_size(page_size);
    do {
      Await<absl::StatusOr<v1::ListJobsResponse>> answer;
      queue_->ListJobs(request, answer.done());
      auto page = answer.Get();
      REQUIRE(page.ok());
      CHECK(static_cast<uint32_t>(page->jobs_size()) <= page_size);
      CHECK(page->jobs_size() > 0);
      for (const v1::Job& job : page->jobs()) ids.push_back(job.id());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return ids;
  }

 private:
  SystemClock clock_;
  std::vector<std::unique_ptr<MemoryTaskStore>> stores_;
  Metrics metrics_{"test"};
  QueueMetrics queue_metrics_{metrics_};
  std::unique_ptr<TaskQueue> queue_;
  uint64_t ticket_ = 0;
};

TEST_CASE("jobs are spread over the shards and found again, also with more or fewer of them") {
  Sharded queue;
  std::vector<std::string> ids;
  std::set<size_t> used;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(queue.Submit({.request_id = absl::StrCat("id-", i)}).job().id());
    used.insert(queue.ShardOf(ids.back()));
  }
  CHECK(used.size() == 3);
  CHECK(queue.List(3) == std::vector<std::string>(ids.rbegin(), ids.rend()));
  CHECK(queue.List(20).size() == 20);
  Await<absl::StatusOr<v1::ListJobsResponse>> wrong;
  v1::ListJobsRequest request;
  request.set_page_token("5");
  queue->ListJobs(request, wrong.done());
  CHECK(wrong.Get().status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(queue.Get("job-none").status().code() == absl::StatusCode::kNotFound);

  // Four stores, of which one is new; then four, of which new jobs use one.
  for (size_t shards : {size_t{4}, size_t{1}}) {
    queue.Start(4, shards);
    for (int i = 0; i < 20; ++i) {
      v1::SubmitResponse again = queue.Submit({.request_id = absl::StrCat("id-", i)});
      CHECK(again.existed());
      CHECK(again.job().id() == ids[static_cast<size_t>(i)]);
      CHECK(queue.Get(ids[static_cast<size_t>(i)]).ok());
    }
  }
  CHECK(queue.ShardOf(queue.Submit({.request_id = "late"}).job().id()) == 0);
  Await<absl::StatusOr<v1::Job>> deleted;
  queue->Delete(ids[0], deleted.done());
  CHECK(deleted.Get().ok());
  CHECK_FALSE(queue.Submit({.request_id = "id-0"}).existed());
}

TEST_CASE("jobs on different shards share by weight within five percent") {
  uint32_t free = GENERATE(1, 7, 64);
  Sharded queue;
  std::map<std::string, uint32_t> weights;
  // Two on one shard, one on each of the others.
  weights[queue.SubmitTo(0, {.tasks = 4000, .weight = 1})] = 1;
  weights[queue.SubmitTo(1, {.tasks = 4000, .weight = 2})] = 2;
  weights[queue.SubmitTo(2, {.tasks = 4000, .weight = 4})] = 4;
  JobShape second{.tasks = 4000, .weight = 1};
  second.request_id = Sharded::RequestFor(0, 3, 1000);
  weights[queue.Submit(second).job().id()] = 1;
  std::map<std::string, int> granted;
  int total = 0;
  while (total < 3200) {
    auto answer = queue.Sync(Sharded::Request(free)).Get();
    REQUIRE(answer.ok());
    REQUIRE(answer->granted_size() > 0);
    REQUIRE(static_cast<uint32_t>(answer->granted_size()) <= free);
    for (const v1::Lease& lease : answer->granted()) ++granted[lease.token().item().job()];
    total += answer->granted_size();
  }
  for (const auto& [job, weight] : weights) {
    INFO("weight " << weight << ": " << granted[job] << " of " << total);
    CHECK(granted[job] == Approx(total * weight / 8.0).epsilon(0.05));
  }
}

TEST_CASE("a shard that has little does not lose its share by it, and the others get the rest") {
  Sharded queue;
  std::string small = queue.SubmitTo(0, {.tasks = 400, .max_concurrency = 1});
  std::string large = queue.SubmitTo(1, {.tasks = 4000});
  int of_small = 0;
  int total = 0;
  for (int i = 0; i < 60; ++i) {
    auto answer = queue.Sync(Sharded::Request(16)).Get();
    REQUIRE(answer.ok());
    // Places that the one cannot fill are the other's, at the latest with the next Sync.
    total += answer->granted_size();
    for (const v1::Lease& lease : answer->granted()) {
      if (lease.token().item().job() != small) continue;
      ++of_small;
      Await<absl::Status> completed;
      queue->Complete(Completion(lease.token()), completed.done());
      REQUIRE(completed.Get().ok());
    }
  }
  CHECK(of_small >= 55);
  CHECK(total >= 60 * 8);
}

TEST_CASE("the highest band goes first on whatever shard it is") {
  Sharded queue;
  queue.SubmitTo(0, {.tasks = 50, .priority = 3});
  std::string high = queue.SubmitTo(2, {.tasks = 20, .priority = 7});
  auto answer = queue.Sync(Sharded::Request(20)).Get();
  REQUIRE(answer.ok());
  for (const v1::Lease& lease : answer->granted()) CHECK(lease.token().item().job() == high);
}

TEST_CASE("a Sync that waits gets what comes to any shard, and its orders") {
  size_t shard = GENERATE(0, 1, 2);
  Sharded queue;
  SyncAnswer waits = queue.Sync(Sharded::Request(2, 10));
  SyncAnswer nothing = queue.Sync(Sharded::Request(0));
  CHECK(waits.Get().status().code() == absl::StatusCode::kAborted);
  CHECK(nothing.Get()->granted().empty());
  waits = queue.Sync(Sharded::Request(2, 10));
  std::string job = queue.SubmitTo(shard, {});
  auto granted = waits.Get();
  REQUIRE(granted.ok());
  REQUIRE(granted->granted_size() == 1);
  CHECK(granted->jobs().count(job) == 1);
  v1::LeaseToken token = granted->granted(0).token();

  waits = queue.Sync(Sharded::Request(0, 10, {token}));
  Await<absl::StatusOr<v1::Job>> cancelled;
  queue->Cancel(job, cancelled.done());
  REQUIRE(cancelled.Get().ok());
  auto ordered = waits.Get();
  REQUIRE(ordered.ok());
  REQUIRE(ordered->held_size() == 1);
  CHECK(ordered->held(0).order() == v1::LEASE_ORDER_CANCEL);
}

TEST_CASE("a Sync that waits ends with its time, its caller and the queue") {
  Sharded queue;
  auto short_wait = Sharded::Request(1, 0);
  short_wait.mutable_wait()->set_nanos(50'000'000);
  auto over = queue.Sync(short_wait).Get();
  REQUIRE(over.ok());
  CHECK(over->granted().empty());
  CHECK(over->next_sync().seconds() == 10);
  SyncAnswer gone = queue.Sync(Sharded::Request(1, 10));
  queue->CancelSync(queue.ticket());
  CHECK(gone.Get().status().code() == absl::StatusCode::kCancelled);
  SyncAnswer left = queue.Sync(Sharded::Request(1, 10));
  queue.Stop();
  CHECK(left.Get().status().code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("a message's calls are answered in their order, whichever shards they concern") {
  Sharded queue;
  std::vector<std::string> jobs;
  for (size_t shard = 0; shard < 3; ++shard) jobs.push_back(queue.SubmitTo(shard, {.tasks = 2}));
  auto session = queue->NewSession();
  auto exchange = [&](const v1::SessionRequest& request) {
    Await<absl::StatusOr<v1::SessionResponse>> answer;
    queue->Exchange(
        request, session,
        [done = answer.done()](absl::StatusOr<v1::SessionResponse> response, bool last) {
          if (last) done(std::move(response));
        });
    auto response = answer.Get();
    REQUIRE(response.ok());
    return *response;
  };
  v1::SessionRequest take;
  take.set_id(1);
  *take.mutable_sync() = Sharded::Request(3);
  v1::SessionResponse first = exchange(take);
  CHECK(first.id() == 1);
  REQUIRE(first.sync().granted_size() == 3);
  CHECK(first.sync().jobs().size() == 3);

  v1::SessionRequest next;
  next.set_id(2);
  std::vector<v1::LeaseToken> held;
  for (const v1::Lease& lease : first.sync().granted()) {
    *next.add_steps() = ReplyStep(lease.token(), 0);
    // Refused, of the second one alone.
    v1::LeaseToken token = lease.token();
    if (next.steps_size() == 2) token.set_attempt(9);
    *next.add_completions() = Completion(token);
    held.push_back(token);
  }
  *next.mutable_sync() = Sharded::Request(3, 0, held);
  v1::SessionResponse second = exchange(next);
  REQUIRE(second.steps_size() == 3);
  for (const v1::CallStatus& status : second.steps()) CHECK(status.code() == 0);
  REQUIRE(second.completions_size() == 3);
  CHECK(second.completions(0).code() == 0);
  CHECK(second.completions(1).code() == static_cast<int>(absl::StatusCode::kFailedPrecondition));
  CHECK(second.completions(2).code() == 0);
  REQUIRE(second.sync().held_size() == 3);
  for (const v1::HeldLease& lease : second.sync().held()) {
    CHECK(lease.order() == v1::LEASE_ORDER_LOST);
  }
  CHECK(second.sync().held(1).token().attempt() == 9);
  CHECK(second.sync().granted_size() == 3);
  // Their specs are known.
  CHECK(second.sync().jobs().empty());

  Await<absl::StatusOr<std::vector<v1::Runner>>> runners;
  queue->ListRunners(runners.done());
  auto list = runners.Get();
  REQUIRE(list.ok());
  REQUIRE(list->size() == 1);
  CHECK(list->at(0).held() == 3);
  CHECK(list->at(0).free() == 3);
}

TEST_CASE("many runners over several shards lose nothing and are given nothing twice") {
  constexpr int kRunners = 8;
  constexpr uint32_t kTasks = 150;
  Sharded queue;
  std::vector<std::string> jobs;
  for (size_t shard = 0; shard < 3; ++shard) {
    jobs.push_back(queue.SubmitTo(shard, {.tasks = kTasks}));
  }
  std::mutex mutex;
  std::map<std::pair<std::string, uint32_t>, int> given;
  std::vector<std::thread> threads;
  for (int i = 0; i < kRunners; ++i) {
    threads.emplace_back([&, i] {
      auto request = Sharded::Request(static_cast<uint32_t>(1 + i % 4), 0);
      request.set_runner(absl::StrCat("runner-", i));
      request.mutable_wait()->set_nanos(200'000'000);
      for (int empty = 0; empty < 2;) {
        SyncAnswer answer;
        queue->Sync(request, answer.done());
        auto response = answer.Get();
        if (!response.ok() || response->granted().empty()) {
          ++empty;
          continue;
        }
        for (const v1::Lease& lease : response->granted()) {
          {
            std::lock_guard lock(mutex);
            ++given[{lease.token().item().job(), lease.token().item().number()}];
          }
          queue->Complete(Completion(lease.token()), [](const absl::Status&) {});
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(given.size() == 3 * kTasks);
  for (const auto& [item, times] : given) CHECK(times == 1);
  for (const std::string& job : jobs) {
    CHECK(queue.Get(job)->state() == v1::JOB_STATE_FINISHED);
    CHECK(FindContradiction(queue->StoreOf(job)).empty());
  }
}

}  // namespace
}  // namespace kmosaic
