#include "tests/unit/queue/queue_fixture.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "coordinator/queue/store_check.h"

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
  absl::Status status = effects_.batch.empty() ? absl::OkStatus() : store_.Write(effects_.batch);
  if (status.ok()) sequencer_->Committed();
  return status;
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

absl::StatusOr<v1::ExtendJobResponse> QueueFixture::Extend(const v1::ExtendJobRequest& request) {
  auto extension = MakeExtension(request);
  REQUIRE(extension.ok());
  auto result = sequencer_->Extend(*extension, Context(), Begin());
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

std::string FindContradiction(const TaskStore& store) {
  return std::string(CheckStore(store).status().message());
}

}  // namespace kmosaic
