#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/queue/queue_fixture.h"

namespace kmosaic {
namespace {

constexpr auto kStale = absl::StatusCode::kFailedPrecondition;

TEST_CASE("a lease is renewed by heartbeats for as long as they come") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  for (int i = 0; i < 20; ++i) {
    queue.Advance(absl::Seconds(29));
    queue.Tick();
    SyncResult result = queue.Sync("runner", 0, {token});
    REQUIRE(result.held.size() == 1);
    CHECK(result.held[0].order() == v1::LEASE_ORDER_KEEP);
    CHECK_FALSE(result.urgent);
  }
  CHECK(queue.Complete(Completion(token)).ok());
}

TEST_CASE("an expired lease goes to another runner, and the late holder is refused everywhere") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken old = queue.LeaseOne("first");
  REQUIRE(queue.Record(ReplyStep(old, 0)).ok());
  queue.Advance(absl::Seconds(30));
  queue.Tick();
  CHECK(queue.effects().expired_leases == 1);
  CHECK(queue.Counts(job.id()).ready() == 1);
  v1::LeaseToken current = queue.LeaseOne("second");
  CHECK(current.attempt() == old.attempt() + 1);

  CHECK(queue.Record(ResultStep(old, 1)).code() == kStale);
  CHECK(queue.Record(ReplyStep(old, 0)).code() == kStale);
  CHECK(queue.Complete(Completion(old)).code() == kStale);
  CHECK(queue.Release(Releasing(old, v1::FAILURE_CLASS_FINAL)).code() == kStale);
  std::string runner;
  std::shared_ptr<const v1::JobSpec> spec;
  CHECK(queue.sequencer().CheckLease(old, &runner, &spec, queue.Begin()).code() == kStale);
  REQUIRE(queue.effects().stale_verbs.size() == 1);
  CHECK(std::string(queue.effects().stale_verbs[0]) == "check_lease");
  SyncResult result = queue.Sync("first", 0, {old});
  CHECK(result.held[0].order() == v1::LEASE_ORDER_LOST);
  CHECK(result.urgent);

  CHECK(queue.sequencer().CheckLease(current, &runner, &spec, queue.Begin()).ok());
  CHECK(runner == "second");
  CHECK(queue.Record(ResultStep(current, 1)).ok());
  CHECK(queue.Complete(Completion(current)).ok());
  v1::Item item = queue.Item(job.id(), 0);
  CHECK(item.state() == v1::ITEM_STATE_DONE);
  CHECK(item.holder_deaths() == 1);
  REQUIRE(item.history_size() == 2);
  CHECK(item.history(0).outcome().find("first") != std::string::npos);
  CHECK(item.history(1).outcome() == "completed");
}

TEST_CASE("a token of another incarnation, epoch or attempt is not current") {
  QueueFixture queue;
  queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  v1::LeaseToken other = token;
  other.set_incarnation("a restored backup");
  CHECK(queue.Complete(Completion(other)).code() == kStale);
  other = token;
  other.set_epoch(token.epoch() + 1);
  CHECK(queue.Complete(Completion(other)).code() == kStale);
  other = token;
  other.set_attempt(token.attempt() - 1);
  CHECK(queue.Complete(Completion(other)).code() == kStale);
  other = token;
  other.mutable_item()->set_number(7);
  CHECK(queue.Complete(Completion(other)).code() == kStale);
  CHECK(queue.Complete(Completion(token)).ok());
}

TEST_CASE("three holder deaths without progress make an item dead, with its history") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2});
  for (int death = 0; death < 3; ++death) {
    queue.LeaseOne("poisoned");
    queue.Advance(absl::Seconds(31));
    queue.Tick();
  }
  v1::Item item = queue.Item(job.id(), 0);
  CHECK(item.state() == v1::ITEM_STATE_DEAD);
  CHECK(item.holder_deaths() == 3);
  CHECK(item.charged_attempts() == 0);
  CHECK(item.history_size() == 3);
  CHECK(item.last_error().find("poisoned") != std::string::npos);
  // The rest flows on.
  CHECK(queue.LeaseOne().item().number() == 1);
}

TEST_CASE("a holder of many items that dies blames each of them a little") {
  QueueRules rules;
  rules.max_holder_deaths = 5;
  constexpr uint32_t kHeld = 32;
  SECTION("three deaths end none of them, and the plain number of deaths all") {
    QueueFixture queue(rules);
    v1::Job job = queue.Submit({.tasks = kHeld});
    for (uint32_t death = 0; death < rules.max_holder_deaths; ++death) {
      CHECK(queue.Counts(job.id()).dead() == 0);
      REQUIRE(queue.Sync("fleet", kHeld).granted.size() == kHeld);
      queue.Advance(absl::Seconds(31));
      queue.Tick();
    }
    CHECK(queue.Counts(job.id()).dead() == kHeld);
  }
  SECTION("also over a restart of the coordinator and in several ticks") {
    QueueFixture queue(rules);
    v1::Job job = queue.Submit({.tasks = kHeld});
    for (int death = 0; death < 4; ++death) {
      REQUIRE(queue.Sync("fleet", kHeld).granted.size() == kHeld);
      queue.Restart();
      queue.Advance(absl::Seconds(31));
      Effects& effects = queue.Begin();
      while (queue.sequencer().Tick(queue.Context(), effects, 3)) {
      }
      REQUIRE(queue.Commit().ok());
    }
    CHECK(queue.Counts(job.id()).ready() == kHeld);
  }
  SECTION("what kills its holder alone is found among others") {
    QueueFixture queue(rules);
    v1::Job job = queue.Submit({.tasks = 3});
    // Blames of 1/3, 1, 1 and 1.
    REQUIRE(queue.Sync("three", 3).granted.size() == 3);
    queue.Advance(absl::Seconds(31));
    queue.Tick();
    for (int death = 0; death < 3; ++death) {
      CHECK(queue.Counts(job.id()).dead() == 0);
      CHECK(queue.LeaseOne("alone").item().number() == 0);
      queue.Advance(absl::Seconds(31));
      queue.Tick();
    }
    CHECK(queue.Item(job.id(), 0).state() == v1::ITEM_STATE_DEAD);
    CHECK(queue.Counts(job.id()).ready() == 2);
    REQUIRE(queue.Retry(job.id()).ok());
    queue.LeaseOne("alone");
    queue.Advance(absl::Seconds(31));
    queue.Tick();
    CHECK(queue.Counts(job.id()).ready() == 3);
  }
  SECTION("a sign of life between makes two deaths of it") {
    QueueFixture queue(rules);
    v1::Job job = queue.Submit({.tasks = 2});
    SyncResult both = queue.Sync("slow", 2);
    REQUIRE(both.granted.size() == 2);
    queue.Advance(absl::Seconds(20));
    queue.Sync("slow", 0, {both.granted[1].token});
    queue.Advance(absl::Seconds(15));
    queue.Tick();
    CHECK(queue.Counts(job.id()).ready() == 1);
    queue.Sync("slow", 0, {both.granted[1].token});
    queue.Advance(absl::Seconds(31));
    queue.Tick();
    CHECK(queue.Counts(job.id()).ready() == 2);
  }
}

TEST_CASE("deaths with steps between them do not make an item dead") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  for (uint32_t death = 0; death < 8; ++death) {
    v1::LeaseToken token = queue.LeaseOne();
    REQUIRE(queue.Record(death % 2 == 0 ? ReplyStep(token, death) : ResultStep(token, death)).ok());
    queue.Advance(absl::Seconds(31));
    queue.Tick();
  }
  CHECK(queue.Item(job.id(), 0).state() == v1::ITEM_STATE_READY);
  CHECK(queue.Item(job.id(), 0).holder_deaths() == 8);
}

TEST_CASE("infrastructure failures are not charged, and are dead after three workers") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.max_attempts = 1});
  auto fail_on = [&](const std::string& worker) {
    v1::LeaseToken token = queue.LeaseOne();
    REQUIRE(queue.Release(Releasing(token, v1::FAILURE_CLASS_INFRASTRUCTURE, worker)).ok());
    queue.Advance(absl::Minutes(6));
    queue.Tick();
  };
  for (int i = 0; i < 5; ++i) fail_on("worker-a");
  fail_on("");
  fail_on("worker-b");
  CHECK(queue.Item(job.id(), 0).state() == v1::ITEM_STATE_READY);
  CHECK(queue.Item(job.id(), 0).charged_attempts() == 0);
  CHECK(queue.Item(job.id(), 0).last_error().find("worker-b") != std::string::npos);
  fail_on("worker-c");
  CHECK(queue.Item(job.id(), 0).state() == v1::ITEM_STATE_DEAD);
}

TEST_CASE("retryable failures back off with jitter inside the cap, then fail") {
  QueueRules rules;
  QueueFixture queue(rules);
  v1::Job job = queue.Submit({.max_attempts = 4});
  std::set<int64_t> waits;
  for (int failure = 0; failure < 4; ++failure) {
    v1::LeaseToken token = queue.LeaseOne();
    REQUIRE(queue.Release(Releasing(token, v1::FAILURE_CLASS_RETRYABLE)).ok());
    v1::Item item = queue.Item(job.id(), 0);
    if (failure == 3) {
      CHECK(item.state() == v1::ITEM_STATE_FAILED);
      CHECK(item.charged_attempts() == 4);
      break;
    }
    REQUIRE(item.state() == v1::ITEM_STATE_DELAYED);
    absl::Duration wait = FromTimestamp(item.not_before()) - FromTimestamp(item.updated());
    CHECK(wait >= absl::ZeroDuration());
    CHECK(wait <= rules.backoff_base * (1 << failure));
    waits.insert(absl::ToInt64Nanoseconds(wait));
    CHECK(queue.Sync("runner", 1).granted.empty());
    queue.Advance(wait + absl::Microseconds(1));
    queue.Tick();
  }
  CHECK(waits.size() == 3);
}

TEST_CASE("a release may ask for a longer delay than the back-off") {
  QueueFixture queue;
  queue.Submit({});
  v1::ReleaseRequest release = Releasing(queue.LeaseOne(), v1::FAILURE_CLASS_RETRYABLE);
  release.mutable_delay()->set_seconds(600);
  REQUIRE(queue.Release(release).ok());
  queue.Advance(absl::Seconds(599));
  queue.Tick();
  CHECK(queue.Sync("runner", 1).granted.empty());
  queue.Advance(absl::Seconds(1));
  queue.Tick();
  CHECK(queue.Sync("runner", 1).granted.size() == 1);
}

TEST_CASE("a final failure is not tried again, and an unclassified one is refused") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  CHECK(queue.Release(Releasing(token, v1::FAILURE_CLASS_UNSPECIFIED)).code() ==
        absl::StatusCode::kInvalidArgument);
  REQUIRE(queue.Release(Releasing(token, v1::FAILURE_CLASS_FINAL)).ok());
  CHECK(queue.Item(job.id(), 0).state() == v1::ITEM_STATE_FAILED);
  CHECK(queue.sequencer().Get(job.id())->state() == v1::JOB_STATE_FINISHED);
}

TEST_CASE("what is handed back is ready at once, uncharged, and goes before new work") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 3});
  v1::LeaseToken first = queue.LeaseOne();
  v1::LeaseToken second = queue.LeaseOne();
  v1::ReleaseRequest release;
  *release.mutable_token() = first;
  release.set_handed_back(true);
  REQUIRE(queue.Release(release).ok());
  // Said twice, since the first answer may have been lost.
  CHECK(queue.Release(release).ok());
  CHECK(queue.Counts(job.id()).ready() == 2);
  v1::LeaseToken again = queue.LeaseOne("other");
  CHECK(again.item().number() == first.item().number());
  CHECK(queue.Item(job.id(), 0).charged_attempts() == 0);
  CHECK(queue.Release(release).code() == kStale);
}

TEST_CASE("steps are recorded once each, in order, and paid tokens are counted once") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  CHECK(queue.Record(ReplyStep(token, 2)).code() == absl::StatusCode::kOutOfRange);
  REQUIRE(queue.Record(ReplyStep(token, 0)).ok());
  CHECK(queue.Record(ReplyStep(token, 0)).ok());
  CHECK(queue.Record(ReplyStep(token, 0, "another answer")).code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(queue.Record(ReplyStep(token, 1)).code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(queue.Record(ResultStep(token, 1)).ok());
  CHECK(queue.Record(ReplyStep(token, 0)).ok());
  v1::RecordStepRequest empty;
  *empty.mutable_token() = token;
  empty.mutable_step()->set_number(2);
  CHECK(queue.Record(empty).code() == absl::StatusCode::kInvalidArgument);
  v1::JobCounts counts = queue.Counts(job.id());
  CHECK(counts.steps() == 2);
  CHECK(counts.usage().requests() == 1);
  CHECK(counts.usage().prompt_tokens() == 100);
  CHECK(counts.usage().completion_tokens() == 10);

  // The next coordinator and the next holder know them too.
  queue.Restart();
  CHECK(queue.Record(ReplyStep(token, 0)).ok());
  CHECK(queue.Record(ReplyStep(token, 0, "another answer")).code() ==
        absl::StatusCode::kAlreadyExists);
  queue.Advance(absl::Seconds(31));
  queue.Tick();
  SyncResult result = queue.Sync("next", 1);
  REQUIRE(result.granted.size() == 1);
  CHECK(result.granted[0].steps == 2);
  auto reader = JobReader::Open(queue.store(), job.id());
  auto steps = reader->ReadSteps(0);
  REQUIRE(steps->size() == 2);
  CHECK((*steps)[0].reply().content() == "reply");
  CHECK((*steps)[0].runner() == "runner");
  CHECK((*steps)[1].attempt() == 1);
}

TEST_CASE("two steps recorded in one batch are judged against each other") {
  QueueFixture queue;
  queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  Effects& effects = queue.Begin();
  CHECK(queue.sequencer().RecordStep(ReplyStep(token, 0), queue.Context(), effects).ok());
  CHECK(queue.sequencer().RecordStep(ReplyStep(token, 0), queue.Context(), effects).ok());
  CHECK(
      queue.sequencer().RecordStep(ReplyStep(token, 0, "other"), queue.Context(), effects).code() ==
      absl::StatusCode::kAlreadyExists);
  CHECK(effects.steps == 1);
}

TEST_CASE("a completion said twice is one completion") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  REQUIRE(queue.Complete(Completion(token)).ok());
  size_t events = queue.Events(job.id()).size();
  CHECK(queue.Complete(Completion(token)).ok());
  queue.Restart();
  CHECK(queue.Complete(Completion(token)).ok());
  CHECK(queue.Events(job.id()).size() == events);
  CHECK(queue.Counts(job.id()).verified() == 1);
  CHECK(queue.Release(Releasing(token, v1::FAILURE_CLASS_FINAL)).code() == kStale);
  CHECK(FindContradiction(queue.store()).empty());
}

TEST_CASE("after a restart holders keep their leases for a full term") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 2});
  v1::LeaseToken kept = queue.LeaseOne("alive");
  v1::LeaseToken lost = queue.LeaseOne("gone");
  queue.Advance(absl::Seconds(29));
  queue.Restart();
  queue.Advance(absl::Seconds(29));
  queue.Tick();
  CHECK(queue.Counts(job.id()).leased() == 2);
  CHECK(queue.Sync("alive", 0, {kept}).held[0].order() == v1::LEASE_ORDER_KEEP);
  queue.Advance(absl::Seconds(2));
  queue.Tick();
  CHECK(queue.Counts(job.id()).leased() == 1);
  CHECK(queue.Complete(Completion(kept)).ok());
  CHECK(queue.Complete(Completion(lost)).code() == kStale);
}

TEST_CASE("a delay survives a restart, and the wall clock decides only across it") {
  QueueFixture queue;
  queue.Submit({});
  v1::ReleaseRequest release = Releasing(queue.LeaseOne(), v1::FAILURE_CLASS_RETRYABLE);
  release.mutable_delay()->set_seconds(600);
  REQUIRE(queue.Release(release).ok());
  queue.JumpWall(absl::Hours(24));
  queue.Tick();
  CHECK(queue.Sync("runner", 1).granted.empty());
  queue.JumpWall(-absl::Hours(24));
  queue.Advance(absl::Seconds(300));
  queue.Restart();
  queue.Advance(absl::Seconds(299));
  queue.Tick();
  CHECK(queue.Sync("runner", 1).granted.empty());
  queue.Advance(absl::Seconds(2));
  queue.Tick();
  CHECK(queue.Sync("runner", 1).granted.size() == 1);
}

TEST_CASE("a coordinator that stood still does not blame its runners") {
  QueueFixture queue;
  v1::Job job = queue.Submit({});
  queue.LeaseOne();
  queue.Advance(absl::Minutes(10));
  queue.sequencer().RenewAll(queue.Context());
  queue.Tick();
  CHECK(queue.Counts(job.id()).leased() == 1);
  queue.Advance(absl::Seconds(30));
  queue.Tick();
  CHECK(queue.Counts(job.id()).leased() == 0);
}

TEST_CASE("a draining runner and one without room are given nothing") {
  QueueFixture queue;
  queue.Submit({});
  CHECK(queue.Sync("runner", 0).granted.empty());
  CHECK(queue.Sync("runner", 5, {}, true).granted.empty());
  CHECK(queue.Sync("runner", 5).granted.size() == 1);
  auto runners = queue.sequencer().Runners();
  REQUIRE(runners.size() == 1);
  CHECK(runners[0].id() == "runner");
  CHECK(runners[0].free() == 5);
  queue.Advance(absl::Minutes(6));
  queue.Tick();
  CHECK(queue.sequencer().Runners().empty());
}

TEST_CASE("a nearly full disk stops new jobs first and every write later") {
  QueueFixture queue;
  v1::Job job = queue.Submit({.tasks = 3});
  v1::LeaseToken token = queue.LeaseOne();
  queue.set_disk(DiskState::kNoSubmits);
  CHECK(queue.sequencer()
            .Submit(MakeSubmission({}), queue.Context(), queue.Begin())
            .status()
            .code() == absl::StatusCode::kResourceExhausted);
  CHECK(queue.Record(ReplyStep(token, 0)).ok());
  CHECK(queue.Sync("runner", 1).granted.size() == 1);

  queue.set_disk(DiskState::kReadOnly);
  int writes = queue.store().writes();
  CHECK(queue.Sync("runner", 1, {token}).granted.empty());
  CHECK(queue.Record(ResultStep(token, 1)).code() == absl::StatusCode::kResourceExhausted);
  CHECK(queue.Complete(Completion(token)).code() == absl::StatusCode::kResourceExhausted);
  CHECK(queue.Cancel(job.id()).status().code() == absl::StatusCode::kResourceExhausted);
  queue.Advance(absl::Minutes(2));
  queue.Tick();
  CHECK(queue.store().writes() == writes);
  CHECK(queue.Sync("runner", 1, {token}).held[0].order() == v1::LEASE_ORDER_KEEP);

  queue.set_disk(DiskState::kOk);
  CHECK(queue.Complete(Completion(token)).ok());
}

TEST_CASE("a reply holds no more bytes than it may, but one lease in any case") {
  QueueRules rules;
  rules.max_grant_bytes = 3000;
  QueueFixture queue(rules);
  queue.Submit({.tasks = 30});
  SyncResult few = queue.Sync("runner", 30);
  CHECK(few.granted.size() > 1);
  CHECK(few.granted.size() < 15);
  v1::LeaseToken token = few.granted[0].token;
  REQUIRE(queue.Record(ReplyStep(token, 0, std::string(10'000, 'r'))).ok());
  v1::ReleaseRequest back = Releasing(token, v1::FAILURE_CLASS_UNSPECIFIED);
  back.set_handed_back(true);
  REQUIRE(queue.Release(back).ok());
  // The conversation alone is larger than the bound.
  CHECK(queue.Sync("runner", 30).granted.size() == 1);
}

TEST_CASE("a conversation that would not fit into a reply is not recorded") {
  QueueRules rules;
  rules.max_conversation_bytes = 2000;
  QueueFixture queue(rules);
  queue.Submit({});
  v1::LeaseToken token = queue.LeaseOne();
  REQUIRE(queue.Record(ReplyStep(token, 0, std::string(1000, 'r'))).ok());
  REQUIRE(queue.Record(ResultStep(token, 1)).ok());
  absl::Status status = queue.Record(ReplyStep(token, 2, std::string(1000, 'r')));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(queue.Record(ReplyStep(token, 2, "short")).ok());
}

TEST_CASE("calls for finished items, which are on disk alone, are told from stale ones") {
  QueueFixture queue;
  std::string job = queue.Submit({.tasks = 2}).id();
  v1::LeaseToken done = queue.LeaseOne();
  v1::LeaseToken failed = queue.LeaseOne();
  REQUIRE(queue.Complete(Completion(done)).ok());
  REQUIRE(queue.Release(Releasing(failed, v1::FAILURE_CLASS_FINAL)).ok());
  for (bool restarted : {false, true}) {
    if (restarted) queue.Restart();
    CHECK(queue.Complete(Completion(done)).ok());
    CHECK(queue.Release(Releasing(failed, v1::FAILURE_CLASS_FINAL)).ok());
    CHECK(queue.Complete(Completion(failed)).code() == absl::StatusCode::kFailedPrecondition);
    v1::LeaseToken older = done;
    older.set_attempt(done.attempt() + 1);
    CHECK(queue.Complete(Completion(older)).code() == absl::StatusCode::kFailedPrecondition);
  }
  CHECK(queue.Counts(job).done() == 1);
}

}  // namespace
}  // namespace kmosaic
