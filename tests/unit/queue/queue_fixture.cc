#include "tests/unit/queue/queue_fixture.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "coordinator/queue/item_states.h"

namespace kmosaic {

v1::TaskSpec MakeTask(const std::string& id) {
  v1::TaskSpec task;
  task.set_id(id);
  task.set_title(id);
  task.set_family("softmax");
  task.set_contract(v1::CONTRACT_MODELNEW);
  task.set_reference("class Model: pass  # " + id);
  task.mutable_oracle()->set_reference(task.reference());
  return task;
}

v1::SubmitRequest MakeSubmit(const JobShape& shape) {
  v1::SubmitRequest request;
  request.set_request_id(shape.request_id);
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_name("job");
  spec.set_kind("generate");
  spec.add_views()->add_views(v1::VIEW_REFERENCE);
  spec.set_samples(shape.samples);
  spec.mutable_endpoint()->set_kind(v1::ENDPOINT_KIND_REPLAY);
  spec.mutable_endpoint()->set_recordings("{}\n");
  spec.set_weight(shape.weight);
  spec.set_priority(shape.priority);
  spec.set_max_attempts(shape.max_attempts);
  spec.set_max_concurrency(shape.max_concurrency);
  for (uint32_t i = 0; i < shape.tasks; ++i) {
    *request.add_tasks() = MakeTask(absl::StrCat(shape.prefix, i));
  }
  return request;
}

Submission MakeSubmission(const JobShape& shape) {
  SubmissionBuilder builder({});
  REQUIRE(builder.Add(MakeSubmit(shape)).ok());
  auto submission = builder.Finish();
  REQUIRE(submission.ok());
  return *std::move(submission);
}

v1::RecordStepRequest ReplyStep(const v1::LeaseToken& token, uint32_t number,
                                const std::string& text) {
  v1::RecordStepRequest request;
  *request.mutable_token() = token;
  request.mutable_step()->set_number(number);
  v1::ModelReply& reply = *request.mutable_step()->mutable_reply();
  reply.set_content(text);
  reply.mutable_usage()->set_requests(1);
  reply.mutable_usage()->set_prompt_tokens(100);
  reply.mutable_usage()->set_completion_tokens(10);
  return request;
}

v1::RecordStepRequest ResultStep(const v1::LeaseToken& token, uint32_t number,
                                 v1::Verdict verdict) {
  v1::RecordStepRequest request;
  *request.mutable_token() = token;
  request.mutable_step()->set_number(number);
  request.mutable_step()->mutable_result()->mutable_report()->set_verdict(verdict);
  return request;
}

v1::CompleteRequest Completion(const v1::LeaseToken& token, bool verified) {
  v1::CompleteRequest request;
  *request.mutable_token() = token;
  request.mutable_result()->set_verified(verified);
  request.mutable_result()->set_verdict(verified ? v1::VERDICT_PASSED : v1::VERDICT_WRONG_OUTPUT);
  request.mutable_result()->set_stop_reason(v1::STOP_REASON_SOLVED);
  return request;
}

v1::ReleaseRequest Releasing(const v1::LeaseToken& token, v1::FailureClass failure,
                             const std::string& worker) {
  v1::ReleaseRequest request;
  *request.mutable_token() = token;
  request.set_failure(failure);
  request.set_reason("it did not work");
  request.set_worker(worker);
  return request;
}

QueueFixture::QueueFixture(const QueueRules& rules, uint64_t seed) : rules_(rules), random_(seed) {
  Restart();
}

void QueueFixture::Restart() {
  sequencer_.reset();
  store_.Reopen();
  auto identity = StartOn(store_, "incarnation");
  REQUIRE(identity.ok());
  auto loaded = Sequencer::Load(rules_, *identity, store_, Context());
  INFO(loaded.status().ToString());
  REQUIRE(loaded.ok());
  sequencer_ = *std::move(loaded);
}

StepContext QueueFixture::Context() {
  return {steady_, wall_, disk_, [this] { return random_(); }};
}

Effects& QueueFixture::Begin() {
  effects_ = Effects();
  return effects_;
}

absl::Status QueueFixture::Commit() {
  sequencer_->Finish(effects_);
  return effects_.batch.empty() ? absl::OkStatus() : store_.Write(effects_.batch);
}

v1::Job QueueFixture::Submit(const JobShape& shape) {
  auto response = sequencer_->Submit(MakeSubmission(shape), Context(), Begin());
  INFO(response.status().ToString());
  REQUIRE(response.ok());
  REQUIRE(Commit().ok());
  return response->job();
}

SyncResult QueueFixture::Sync(const std::string& runner, uint32_t free,
                              const std::vector<v1::LeaseToken>& held, bool draining) {
  v1::RunnerSyncRequest request;
  request.set_runner(runner);
  request.set_free(free);
  request.set_draining(draining);
  for (const v1::LeaseToken& token : held) *request.add_held() = token;
  auto result = sequencer_->Sync(request, Context(), Begin());
  REQUIRE(result.ok());
  REQUIRE(Commit().ok());
  return *std::move(result);
}

v1::LeaseToken QueueFixture::LeaseOne(const std::string& runner) {
  SyncResult result = Sync(runner, 1);
  REQUIRE(result.granted.size() == 1);
  return result.granted[0].token;
}

absl::Status QueueFixture::Record(const v1::RecordStepRequest& request) {
  absl::Status status = sequencer_->RecordStep(request, Context(), Begin());
  REQUIRE(Commit().ok());
  return status;
}

absl::Status QueueFixture::Complete(const v1::CompleteRequest& request) {
  absl::Status status = sequencer_->Complete(request, Context(), Begin());
  REQUIRE(Commit().ok());
  return status;
}

absl::Status QueueFixture::Release(const v1::ReleaseRequest& request) {
  absl::Status status = sequencer_->Release(request, Context(), Begin());
  REQUIRE(Commit().ok());
  return status;
}

absl::StatusOr<v1::Job> QueueFixture::Cancel(const std::string& job) {
  auto result = sequencer_->Cancel(job, Context(), Begin());
  REQUIRE(Commit().ok());
  return result;
}

absl::StatusOr<v1::Job> QueueFixture::Pause(const std::string& job) {
  auto result = sequencer_->Pause(job, Context(), Begin());
  REQUIRE(Commit().ok());
  return result;
}

absl::StatusOr<v1::Job> QueueFixture::Resume(const std::string& job) {
  auto result = sequencer_->Resume(job, Context(), Begin());
  REQUIRE(Commit().ok());
  return result;
}

absl::StatusOr<uint64_t> QueueFixture::Retry(const std::string& job,
                                             const std::vector<v1::ItemState>& states) {
  v1::RetryJobRequest request;
  request.set_id(job);
  for (v1::ItemState state : states) request.add_states(state);
  auto result = sequencer_->Retry(request, Context(), Begin());
  REQUIRE(Commit().ok());
  if (!result.ok()) return result.status();
  return result->retried();
}

absl::StatusOr<v1::Job> QueueFixture::Delete(const std::string& job) {
  auto result = sequencer_->Delete(job, Begin());
  REQUIRE(Commit().ok());
  return result;
}

void QueueFixture::Tick() {
  sequencer_->Tick(Context(), Begin(), 1000);
  REQUIRE(Commit().ok());
}

v1::JobCounts QueueFixture::Counts(const std::string& job) const {
  auto found = sequencer_->Get(job);
  REQUIRE(found.ok());
  return found->counts();
}

v1::Item QueueFixture::Item(const std::string& job, uint32_t number) const {
  auto reader = JobReader::Open(store_, job);
  REQUIRE(reader.ok());
  auto item = reader->ReadItem(number, true);
  INFO(item.status().ToString());
  REQUIRE(item.ok());
  return *item;
}

std::vector<v1::JobEvent> QueueFixture::Events(const std::string& job) const {
  auto page = ReadEvents(store_, job, 1, 1'000'000);
  REQUIRE(page.ok());
  return page->events;
}

namespace {

std::string CheckEvents(const StoreSnapshot& snapshot, uint64_t job,
                        const v1::StoredJobState& state) {
  uint64_t seq = 0;
  v1::JobEvent event;
  auto cursor = snapshot.Scan(Family::kEvent, keys::OfJob(job));
  for (; cursor->Valid(); cursor->Next()) {
    if (keys::ParseEvent(cursor->key())->seq != ++seq) return "events have a gap";
    event.ParseFromString(std::string(cursor->value()));
    if (event.seq() != seq) return "an event has another number than its key";
  }
  if (seq != state.last_event()) return "last_event is not the newest event";
  if (event.counts().SerializeAsString() != state.counts().SerializeAsString()) {
    return "counters of the newest event are not the job's";
  }
  return "";
}

std::string CheckItem(const StoreSnapshot& snapshot, uint64_t job, uint32_t number,
                      const v1::StoredItem& item, bool cancelled, uint64_t& steps,
                      uint64_t& verified) {
  uint32_t own_steps = 0;
  auto cursor = snapshot.Scan(Family::kStep, keys::AllOfItem(job, number));
  for (; cursor->Valid(); cursor->Next()) {
    if (keys::ParseOfItem(cursor->key())->number != own_steps++) return "steps have a gap";
  }
  if (own_steps != item.steps()) return "steps of an item are not those on disk";
  steps += own_steps;
  auto result = snapshot.Get(Family::kResult, keys::Item(job, number));
  if (item.state() == v1::ITEM_STATE_DONE && !result.ok()) return "a done item has no result";
  if (result.ok()) {
    if (item.state() != v1::ITEM_STATE_DONE && item.state() != v1::ITEM_STATE_CANCELLED) {
      return "an unfinished item has a result";
    }
    v1::ItemResult parsed;
    parsed.ParseFromString(*result);
    if (parsed.verified() && item.state() != v1::ITEM_STATE_DONE) {
      return "a cancelled item has a verified result";
    }
    if (parsed.verified()) ++verified;
  }
  if (cancelled &&
      (item.state() == v1::ITEM_STATE_READY || item.state() == v1::ITEM_STATE_DELAYED)) {
    return "an item of a cancelled job waits";
  }
  if ((item.state() == v1::ITEM_STATE_LEASED) != !item.holder().empty()) {
    return "an item has a holder without a lease, or the other way round";
  }
  return "";
}

std::string CheckJob(const StoreSnapshot& snapshot, uint64_t number, const v1::StoredJob& job) {
  v1::StoredJobState state;
  auto row = snapshot.Get(Family::kJobState, keys::Job(number));
  if (!row.ok() || !state.ParseFromString(*row)) return "no state";
  v1::JobCounts counted;
  uint64_t steps = 0;
  uint64_t verified = 0;
  uint32_t touched = 0;
  auto cursor = snapshot.Scan(Family::kItem, keys::OfJob(number));
  for (; cursor->Valid(); cursor->Next(), ++touched) {
    if (keys::ParseNumbered(cursor->key())->number != touched) return "items have a gap";
    v1::StoredItem item;
    item.ParseFromString(std::string(cursor->value()));
    AddToCount(counted, item.state(), 1);
    std::string error =
        CheckItem(snapshot, number, touched, item, state.cancelled(), steps, verified);
    if (!error.empty()) return error;
  }
  AddToCount(counted, state.cancelled() ? v1::ITEM_STATE_CANCELLED : v1::ITEM_STATE_READY,
             job.items() - touched);
  for (int each = v1::ITEM_STATE_READY; each <= v1::ITEM_STATE_DEAD; ++each) {
    auto item_state = static_cast<v1::ItemState>(each);
    if (CountOf(counted, item_state) != CountOf(state.counts(), item_state)) {
      return absl::StrCat("counter ", each, " is ", CountOf(state.counts(), item_state), ", rows ",
                          CountOf(counted, item_state));
    }
  }
  if (steps != state.counts().steps()) return "the counter of steps is wrong";
  if (verified != state.counts().verified()) return "the counter of verified items is wrong";
  bool open = counted.ready() + counted.delayed() + counted.leased() > 0;
  if (open == state.has_finished()) return "finished is not what the items say";
  return CheckEvents(snapshot, number, state);
}

}  // namespace

std::string FindContradiction(const TaskStore& store) {
  auto snapshot = store.Snapshot();
  std::set<std::string> specs_in_use;
  std::set<uint64_t> jobs;
  auto cursor = snapshot->Scan(Family::kJob, {"", ""});
  for (; cursor->Valid(); cursor->Next()) {
    v1::StoredJob job;
    job.ParseFromString(std::string(cursor->value()));
    uint64_t number = *keys::ParseJob(cursor->key());
    jobs.insert(number);
    std::string error = CheckJob(*snapshot, number, job);
    if (!error.empty()) return absl::StrCat("job ", job.id(), ": ", error);
    auto tasks = snapshot->Scan(Family::kTask, keys::OfJob(number));
    for (; tasks->Valid(); tasks->Next()) {
      v1::StoredTask task;
      task.ParseFromString(std::string(tasks->value()));
      specs_in_use.insert(task.digest());
    }
  }
  std::set<std::string> specs;
  for (auto each = snapshot->Scan(Family::kTaskSpec, {"", ""}); each->Valid(); each->Next()) {
    specs.emplace(each->key());
  }
  if (specs != specs_in_use) return "stored task specs are not those in use";
  for (Family family : kJobFamilies) {
    for (auto each = snapshot->Scan(family, {"", ""}); each->Valid(); each->Next()) {
      if (jobs.count(*keys::ParseJob(each->key().substr(0, 8))) == 0) {
        return absl::StrCat("a row of a deleted job is left in ", std::string(FamilyName(family)));
      }
    }
  }
  return "";
}

}  // namespace kmosaic
