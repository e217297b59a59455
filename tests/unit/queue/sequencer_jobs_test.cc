#include <catch2/catch.hpp>

#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

TEST_CASE("a request id makes one job, however often it is submitted") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2, .request_id = "one"});
  auto submit = [&](const JobShape& shape) {
    auto result = queue.sequencer().Submit(MakeSubmission(shape), queue.Context(), queue.Begin());
    REQUIRE(queue.Commit().ok());
    return result;
  };
  auto again = submit({.tasks = 2, .request_id = "one"});
  REQUIRE(again.ok());
  CHECK(again->existed());
  CHECK(again->job().id() == job.id());
  queue.Restart();
  CHECK(submit({.tasks = 2, .request_id = "one"})->job().id() == job.id());
  CHECK(submit({.tasks = 3, .request_id = "one"}).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(submit({.tasks = 2, .weight = 2, .request_id = "one"}).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK_FALSE(submit({.tasks = 2})->existed());
  CHECK_FALSE(submit({.tasks = 2})->existed());
  CHECK(queue.sequencer().JobIds().size() == 3);
}

TEST_CASE("a job runs from its first event to its last") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2});
  CHECK(job.state() == v1::JOB_STATE_RUNNING);
  CHECK(job.counts().ready() == 2);
  CHECK(job.spec().endpoint().recordings().empty());
  v1::LeaseToken first = queue.LeaseOne();
  v1::LeaseToken second = queue.LeaseOne();
  REQUIRE(queue.Record(ReplyStep(first, 0)).ok());
  REQUIRE(queue.Record(ResultStep(first, 1)).ok());
  REQUIRE(queue.Complete(Completion(first)).ok());
  CHECK_FALSE(ReadEvents(queue.store(), job.id(), 1, 100)->ended);
  REQUIRE(queue.Complete(Completion(second, false)).ok());

  auto page = ReadEvents(queue.store(), job.id(), 1, 100);
  REQUIRE(page.ok());
  CHECK(page->ended);
  std::vector<v1::JobEvent> events = page->events;
  REQUIRE(events.size() == 8);
  for (size_t i = 0; i < events.size(); ++i) CHECK(events[i].seq() == i + 1);
  CHECK(events[0].job_state() == v1::JOB_STATE_RUNNING);
  CHECK(events[1].item().to() == v1::ITEM_STATE_LEASED);
  CHECK(events[1].item().task() == "task0");
  CHECK(events[4].item().verdict() == v1::VERDICT_PASSED);
  CHECK(events[4].item().step() == 1);
  CHECK(events[5].item().to() == v1::ITEM_STATE_DONE);
  CHECK(events[5].counts().verified() == 1);
  CHECK(events[7].job_state() == v1::JOB_STATE_FINISHED);
  CHECK(events[7].counts().done() == 2);

  CHECK(ReadEvents(queue.store(), job.id(), 8, 100)->events.size() == 1);
  CHECK(ReadEvents(queue.store(), job.id(), 9, 100)->ended);
  CHECK_FALSE(ReadEvents(queue.store(), job.id(), 1, 3)->ended);
  CHECK(ReadEvents(queue.store(), "job-none", 1, 3).status().code() == absl::StatusCode::kNotFound);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("cancel before a lease: nothing is granted and the job is over") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 5});
  auto cancelled = queue.Cancel(job.id());
  REQUIRE(cancelled.ok());
  CHECK(cancelled->state() == v1::JOB_STATE_CANCELLED);
  CHECK(cancelled->counts().cancelled() == 5);
  CHECK(cancelled->has_finished());
  CHECK(queue.Sync("runner", 5).granted.empty());
  CHECK(ReadEvents(queue.store(), job.id(), 1, 100)->ended);
  queue.Restart();
  CHECK(queue.Sync("runner", 5).granted.empty());
  CHECK(queue.Item(job.id(), 3).state() == v1::ITEM_STATE_CANCELLED);
  CHECK(queue.Cancel(job.id())->counts().cancelled() == 5);
  CHECK(queue.Events(job.id()).size() == 2);
}

TEST_CASE("cancel against complete: the first one wins") {
  QueueFixture queue;
  SECTION("complete first") {
    v1::Job job = queue.Submit({});
    v1::LeaseToken token = queue.LeaseOne();
    REQUIRE(queue.Complete(Completion(token)).ok());
    CHECK(queue.Cancel(job.id())->state() == v1::JOB_STATE_FINISHED);
    CHECK(queue.Counts(job.id()).verified() == 1);
  }
  SECTION("cancel first") {
    v1::Job job = queue.Submit({});
    v1::LeaseToken token = queue.LeaseOne();
    REQUIRE(queue.Record(ReplyStep(token, 0)).ok());
    CHECK(queue.Cancel(job.id())->counts().leased() == 1);
    // What was paid for is still recorded.
    CHECK(queue.Record(ResultStep(token, 1)).ok());
    REQUIRE(queue.Complete(Completion(token, true)).ok());
    CHECK(queue.Counts(job.id()).verified() == 0);
    v1::Item item = queue.Item(job.id(), 0);
    CHECK(item.state() == v1::ITEM_STATE_CANCELLED);
    CHECK_FALSE(item.result().verified());
    CHECK(item.result().stop_reason() == v1::STOP_REASON_CANCELLED);
    CHECK(item.steps() == 2);
    CHECK(ReadEvents(queue.store(), job.id(), 1, 100)->ended);
  }
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("a holder is told of a cancel once in a hurry, and with every sync") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne("holder");
  REQUIRE(queue.Cancel(job.id()).ok());
  CHECK(queue.effects().ordered.count("holder") == 1);
  SyncResult first = queue.Sync("holder", 0, {token});
  CHECK(first.held[0].order() == v1::LEASE_ORDER_CANCEL);
  CHECK(first.urgent);
  SyncResult second = queue.Sync("holder", 0, {token});
  CHECK(second.held[0].order() == v1::LEASE_ORDER_CANCEL);
  CHECK_FALSE(second.urgent);
  std::string runner;
  std::shared_ptr<const v1::JobSpec> spec;
  CHECK(queue.sequencer().CheckLease(token, &runner, &spec, queue.Begin()).code() ==
        absl::StatusCode::kCancelled);
}

TEST_CASE("cancel, then the holder dies or never stops: the item still ends cancelled") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2});
  queue.LeaseOne("dead");
  v1::LeaseToken stubborn = queue.LeaseOne("stubborn");
  REQUIRE(queue.Cancel(job.id()).ok());
  for (int i = 0; i < 7; ++i) {
    queue.Advance(absl::Seconds(10));
    queue.Tick();
    queue.Sync("stubborn", 0, {stubborn});
  }
  v1::JobCounts counts = queue.Counts(job.id());
  CHECK(counts.cancelled() == 2);
  CHECK(counts.leased() == 0);
  CHECK(queue.Complete(Completion(stubborn)).code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("every way to end a lease of a cancelled job ends in CANCELLED") {
  auto failure = GENERATE(v1::FAILURE_CLASS_INFRASTRUCTURE, v1::FAILURE_CLASS_RETRYABLE,
                          v1::FAILURE_CLASS_FINAL);
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  REQUIRE(queue.Cancel(job.id()).ok());
  REQUIRE(queue.Release(Releasing(token, failure, "worker")).ok());
  CHECK(queue.Counts(job.id()).cancelled() == 1);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("cancel, delete, restart: nothing comes back, and numbers are not used twice") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 3, .request_id = "one"});
  v1::LeaseToken token = queue.LeaseOne();
  REQUIRE(queue.Record(ReplyStep(token, 0)).ok());
  CHECK(queue.Delete(job.id()).status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(queue.Cancel(job.id()).ok());
  CHECK(queue.Delete(job.id()).status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(queue.Complete(Completion(token)).ok());
  auto deleted = queue.Delete(job.id());
  REQUIRE(deleted.ok());
  CHECK(deleted->counts().cancelled() == 3);
  CHECK(FindContradiction(queue.store()).empty());
  queue.Restart();
  CHECK(queue.sequencer().Get(job.id()).status().code() == absl::StatusCode::kNotFound);
  CHECK(JobReader::Open(queue.store(), job.id()).status().code() == absl::StatusCode::kNotFound);
  CHECK(queue.Complete(Completion(token)).code() == absl::StatusCode::kFailedPrecondition);
  CHECK(queue.Sync("runner", 3, {token}).held[0].order() == v1::LEASE_ORDER_LOST);
  // The request id is free again, and the new job is another one.
  v1::Job next = queue.Submit({.tasks = 3, .request_id = "one"});
  CHECK(next.id() != job.id());
  CHECK(queue.Item(next.id(), 0).steps() == 0);
}

TEST_CASE("deleting a job keeps tasks that another job uses") {
  QueueFixture queue;
  v1::Job one = queue.Submit({.tasks = 2});
  v1::Job two = queue.Submit({.tasks = 3});
  REQUIRE(queue.Delete(one.id()).ok());
  CHECK(FindContradiction(queue.store()).empty());
  CHECK(JobReader::Open(queue.store(), two.id())->ReadTask(1).ok());
  queue.Restart();
  REQUIRE(queue.Delete(two.id()).ok());
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("deleting a job takes its delayed items along") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  REQUIRE(queue.Release(Releasing(queue.LeaseOne(), v1::FAILURE_CLASS_RETRYABLE)).ok());
  REQUIRE(queue.Delete(job.id()).ok());
  queue.Advance(absl::Hours(1));
  queue.Tick();
  CHECK(queue.sequencer().NextDue() == absl::InfiniteDuration());
}

TEST_CASE("a paused job grants nothing, also after a restart, until it is resumed") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2});
  v1::LeaseToken token = queue.LeaseOne();
  CHECK(queue.Pause(job.id())->state() == v1::JOB_STATE_PAUSED);
  CHECK(queue.Pause(job.id()).ok());
  CHECK(queue.Sync("runner", 1).granted.empty());
  queue.Restart();
  CHECK(queue.Sync("runner", 1, {token}).granted.empty());
  CHECK(queue.Complete(Completion(token)).ok());
  CHECK(queue.Resume(job.id())->state() == v1::JOB_STATE_RUNNING);
  v1::LeaseToken last = queue.LeaseOne();
  CHECK(queue.Complete(Completion(last)).ok());
  CHECK(queue.Pause(job.id()).status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(queue.Resume(job.id()).status().code() == absl::StatusCode::kFailedPrecondition);
  // RUNNING, leased, PAUSED, done, RUNNING, leased, done, FINISHED.
  CHECK(queue.Events(job.id()).size() == 8);
}

TEST_CASE("retry brings failed and dead items back with their conversation") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 3, .max_attempts = 1});
  v1::LeaseToken failed = queue.LeaseOne();
  REQUIRE(queue.Record(ReplyStep(failed, 0)).ok());
  REQUIRE(queue.Release(Releasing(failed, v1::FAILURE_CLASS_RETRYABLE)).ok());
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  for (int i = 0; i < 3; ++i) {
    queue.LeaseOne();
    queue.Advance(absl::Seconds(31));
    queue.Tick();
  }
  CHECK(queue.sequencer().Get(job.id())->state() == v1::JOB_STATE_FINISHED);
  CHECK(queue.Retry(job.id(), {v1::ITEM_STATE_DONE}).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(*queue.Retry(job.id()) == 2);
  CHECK(*queue.Retry(job.id()) == 0);
  CHECK(queue.sequencer().Get(job.id())->state() == v1::JOB_STATE_RUNNING);
  CHECK_FALSE(queue.sequencer().Get(job.id())->has_finished());
  CHECK(FindContradiction(queue.store()).empty());
  SyncResult result = queue.Sync("runner", 5);
  REQUIRE(result.granted.size() == 2);
  CHECK(result.granted[0].steps == 1);
  CHECK(result.granted[0].token.attempt() == 2);
  CHECK(queue.Release(Releasing(result.granted[0].token, v1::FAILURE_CLASS_RETRYABLE)).ok());
  CHECK(queue.Item(job.id(), 0).state() == v1::ITEM_STATE_FAILED);
  CHECK(queue.Complete(Completion(result.granted[1].token)).ok());
  CHECK(queue.sequencer().Get(job.id())->state() == v1::JOB_STATE_FINISHED);
}

TEST_CASE("a cancelled job comes back only when its cancelled items are asked for") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 4});
  v1::LeaseToken done = queue.LeaseOne();
  v1::LeaseToken held = queue.LeaseOne("holder");
  REQUIRE(queue.Complete(Completion(done)).ok());
  REQUIRE(queue.Cancel(job.id()).ok());
  CHECK(queue.Retry(job.id()).status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(*queue.Retry(job.id(), {v1::ITEM_STATE_CANCELLED}) == 2);
  v1::JobCounts counts = queue.Counts(job.id());
  CHECK(counts.done() == 1);
  CHECK(counts.leased() == 1);
  CHECK(counts.ready() == 2);
  CHECK(FindContradiction(queue.store()).empty());
  // The holder stopped in between: what it held is ready again, at no charge.
  v1::CompleteRequest stopped = Completion(held, false);
  stopped.mutable_result()->set_stop_reason(v1::STOP_REASON_CANCELLED);
  CHECK(queue.Complete(stopped).ok());
  CHECK(queue.Counts(job.id()).ready() == 3);
  CHECK(queue.Sync("runner", 9).granted.size() == 3);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("too many open items are refused until some are done") {
  QueueRules rules;
  rules.max_open_items = 5;
  QueueFixture queue(rules);
  v1::Job job = queue.Submit({.tasks = 4});
  auto more =
      queue.sequencer().Submit(MakeSubmission({.tasks = 2}), queue.Context(), queue.Begin());
  CHECK(more.status().code() == absl::StatusCode::kResourceExhausted);
  queue.Restart();
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  queue.Submit({.tasks = 2});
  REQUIRE(queue.Cancel(job.id()).ok());
  queue.Submit({.tasks = 3});
}

TEST_CASE("items are read in order with task, views and state, touched or not") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2, .samples = 2});
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  auto reader = JobReader::Open(queue.store(), job.id());
  REQUIRE(reader.ok());
  CHECK(reader->spec().endpoint().recordings() == "{}\n");
  std::vector<v1::Item> items;
  REQUIRE(reader
              ->ForEachItem(0,
                            [&](const v1::Item& item) -> absl::StatusOr<bool> {
                              items.push_back(item);
                              return true;
                            })
              .ok());
  REQUIRE(items.size() == 4);
  CHECK(items[0].state() == v1::ITEM_STATE_DONE);
  CHECK(items[0].result().verified());
  CHECK(items[1].state() == v1::ITEM_STATE_READY);
  CHECK(items[1].task() == "task0");
  CHECK(items[1].sample() == 1);
  CHECK(items[2].task() == "task1");
  CHECK(items[3].views().views(0) == v1::VIEW_REFERENCE);
  CHECK(reader->ReadTask(2)->id() == "task1");
  CHECK(reader->ReadItem(4, false).status().code() == absl::StatusCode::kOutOfRange);
  // What came later is not in the snapshot.
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  CHECK(reader->ReadItem(1, false)->state() == v1::ITEM_STATE_READY);
}

TEST_CASE("a store whose rows contradict each other is refused at the start") {
  QueueFixture queue;
  queue.Submit({.tasks = 3});
  queue.LeaseOne();
  queue.LeaseOne();
  WriteBatch damage;
  damage.Delete(Family::kLive, keys::Item(1, 0));
  REQUIRE(queue.store().Write(damage).ok());
  auto identity = StartOn(queue.store(), "x");
  auto loaded = Sequencer::Load({}, *identity, queue.store(), queue.Context());
  CHECK(loaded.status().code() == absl::StatusCode::kDataLoss);
}

v1::ExtendJobRequest MoreTasks(const std::string& job, const std::vector<std::string>& ids,
                               const std::string& request_id = "") {
  v1::ExtendJobRequest request;
  request.set_id(job);
  request.set_request_id(request_id);
  for (const std::string& id : ids) *request.add_tasks() = MakeTask(id);
  return request;
}

TEST_CASE("a job takes more tasks, also when it was finished") {
  QueueFixture queue;
  std::string job = queue.Submit({.tasks = 1, .samples = 2}).id();
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  REQUIRE(queue.sequencer().Get(job)->state() == v1::JOB_STATE_FINISHED);
  auto extended = queue.Extend(MoreTasks(job, {"more0", "more1"}, "one"));
  REQUIRE(extended.ok());
  CHECK(extended->first_item() == 2);
  CHECK(extended->items() == 4);
  CHECK(queue.sequencer().Get(job)->state() == v1::JOB_STATE_RUNNING);
  CHECK(queue.Counts(job).ready() == 4);
  // The same again, also after a restart, changes nothing; other tasks are refused.
  queue.Restart();
  extended = queue.Extend(MoreTasks(job, {"more0", "more1"}, "one"));
  REQUIRE(extended.ok());
  CHECK(extended->existed());
  CHECK(extended->first_item() == 2);
  CHECK(queue.Extend(MoreTasks(job, {"more2"}, "one")).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(queue.Extend(MoreTasks(job, {"fresh", "task0"})).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(queue.Counts(job).total() == 6);
  CHECK(queue.Item(job, 5).task() == "more1");
  CHECK(FindContradiction(queue.store()).empty());
  REQUIRE(queue.Cancel(job).ok());
  CHECK(queue.Extend(MoreTasks(job, {"late"})).status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("a submission that was never finished leaves nothing behind") {
  QueueFixture queue;
  Submission submission = MakeSubmission({.tasks = 3});
  Effects& effects = queue.Begin();
  auto staged = queue.sequencer().Stage(submission, queue.Context(), effects);
  REQUIRE(staged.ok());
  CHECK(queue.sequencer().StageTasks(staged->number, submission, 0, effects) == 3);
  REQUIRE(queue.Commit().ok());
  CHECK(queue.sequencer().JobIds().empty());
  queue.Restart();
  queue.Tick();
  auto snapshot = queue.store().Snapshot();
  CHECK_FALSE(snapshot->Scan(Family::kTask, {"", ""})->Valid());
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("dead letters are listed with their errors, in pages, and single ones come back") {
  QueueFixture queue;
  std::string first = queue.Submit({.tasks = 3}).id();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(queue.Release(Releasing(queue.LeaseOne(), v1::FAILURE_CLASS_FINAL)).ok());
  }
  std::string second = queue.Submit({.prefix = "second"}).id();
  REQUIRE(queue.Release(Releasing(queue.LeaseOne(), v1::FAILURE_CLASS_FINAL)).ok());
  auto page = ReadDeadLetters(queue.store(), "", "", 3);
  REQUIRE(page.ok());
  REQUIRE(page->items.size() == 3);
  CHECK(page->items[0].last_error() == "failed: it did not work");
  page = ReadDeadLetters(queue.store(), "", page->next_page_token, 3);
  REQUIRE(page.ok());
  REQUIRE(page->items.size() == 1);
  CHECK(page->items[0].id().job() == second);
  CHECK(page->next_page_token.empty());
  CHECK(ReadDeadLetters(queue.store(), "job-none", "", 3).status().code() ==
        absl::StatusCode::kNotFound);
  CHECK(ReadDeadLetters(queue.store(), "", "xyz", 3).status().code() ==
        absl::StatusCode::kInvalidArgument);

  v1::RetryJobRequest retry;
  retry.set_id(first);
  retry.add_items(1);
  auto retried = queue.sequencer().Retry(retry, queue.Context(), queue.Begin());
  REQUIRE(retried.ok());
  REQUIRE(queue.Commit().ok());
  CHECK(retried->retried() == 1);
  CHECK(queue.Counts(first).ready() == 1);
  page = ReadDeadLetters(queue.store(), first, "", 10);
  REQUIRE(page.ok());
  CHECK(page->items.size() == 2);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("purged dead letters are cancelled, without their conversations") {
  QueueRules rules;
  rules.max_history = 2;
  QueueFixture queue(rules);
  std::string job = queue.Submit({.tasks = 3, .max_attempts = 4}).id();
  for (int item = 0; item < 2; ++item) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      v1::LeaseToken token = queue.LeaseOne();
      REQUIRE(queue.Record(ReplyStep(token, static_cast<uint32_t>(attempt) * 2)).ok());
      REQUIRE(queue.Record(ResultStep(token, static_cast<uint32_t>(attempt) * 2 + 1)).ok());
      REQUIRE(queue.Release(Releasing(token, v1::FAILURE_CLASS_RETRYABLE)).ok());
      queue.Advance(absl::Minutes(6));
      queue.Tick();
    }
  }
  REQUIRE(queue.Counts(job).failed() == 2);
  REQUIRE(queue.Counts(job).steps() == 16);
  v1::PurgeDeadLettersRequest request;
  request.set_id(job);
  auto purge = [&] {
    auto purged = queue.sequencer().Purge(request, queue.Context(), queue.Begin());
    REQUIRE(purged.ok());
    REQUIRE(queue.Commit().ok());
    CHECK(FindContradiction(queue.store()).empty());
    return purged->purged();
  };
  request.add_items(1);
  request.add_items(2);
  queue.set_disk(DiskState::kReadOnly);
  CHECK(purge() == 1);
  queue.set_disk(DiskState::kOk);
  CHECK(queue.Counts(job).failed() == 1);
  CHECK(queue.Counts(job).cancelled() == 1);
  CHECK(queue.Counts(job).steps() == 8);
  v1::Item item = queue.Item(job, 1);
  CHECK(item.steps() == 0);
  CHECK(item.last_error() == "failed: it did not work");
  CHECK(item.history_size() == 1);
  queue.Restart();
  request.clear_items();
  CHECK(purge() == 1);
  CHECK(purge() == 0);
  // The job goes on and ends.
  REQUIRE(queue.Complete(Completion(queue.LeaseOne())).ok());
  CHECK(queue.sequencer().Get(job)->state() == v1::JOB_STATE_FINISHED);
  CHECK(queue.Retry(job, {v1::ITEM_STATE_CANCELLED}).value() == 2);
  CHECK(FindContradiction(queue.store()).empty());
  CHECK(queue.LeaseOne().item().number() == 0);
}

}  // namespace
}  // namespace kmosaic
