// A sequencer over a store in memory, with time and chance in the test's hands.
#ifndef KMOSAIC_TESTS_UNIT_QUEUE_QUEUE_FIXTURE_H_
#define KMOSAIC_TESTS_UNIT_QUEUE_QUEUE_FIXTURE_H_

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "coordinator/queue/reader.h"
#include "coordinator/queue/sequencer.h"
#include "coordinator/store/memory_task_store.h"
#include "tests/testing/fault_task_store.h"

namespace kmosaic {

v1::TaskSpec MakeTask(const std::string& id);

struct JobShape {
  uint32_t tasks = 1;
  uint32_t samples = 1;
  uint32_t weight = 1;
  uint32_t priority = 5;
  uint32_t max_attempts = 3;
  uint32_t max_concurrency = 0;
  std::string request_id;
  // Differs between jobs that have to have different tasks.
  std::string prefix = "task";
};
v1::SubmitRequest MakeSubmit(const JobShape& shape);
// Through SubmissionBuilder; the request has to be valid.
Submission MakeSubmission(const JobShape& shape);

v1::RecordStepRequest ReplyStep(const v1::LeaseToken& token, uint32_t number,
                                const std::string& text = "reply");
v1::RecordStepRequest ResultStep(const v1::LeaseToken& token, uint32_t number,
                                 v1::Verdict verdict = v1::VERDICT_PASSED);
v1::CompleteRequest Completion(const v1::LeaseToken& token, bool verified = true);
v1::ReleaseRequest Releasing(const v1::LeaseToken& token, v1::FailureClass failure,
                             const std::string& worker = "");

class QueueFixture {
 public:
  explicit QueueFixture(const QueueRules& rules = {}, uint64_t seed = 1);

  // As a coordinator that starts on what is on disk.
  void Restart();

  StepContext Context();
  void Advance(absl::Duration by) {
    steady_ += by;
    wall_ += by;
  }
  void JumpWall(absl::Duration by) { wall_ += by; }
  void set_disk(DiskState disk) { disk_ = disk; }

  // Each of these is a batch of its own; the test fails when it cannot be written.
  v1::Job Submit(const JobShape& shape);
  SyncResult Sync(const std::string& runner, uint32_t free,
                  const std::vector<v1::LeaseToken>& held = {}, bool draining = false);
  // The token of one lease, which has to be granted.
  v1::LeaseToken LeaseOne(const std::string& runner = "runner");
  absl::Status Record(const v1::RecordStepRequest& request);
  absl::Status Complete(const v1::CompleteRequest& request);
  absl::Status Release(const v1::ReleaseRequest& request);
  absl::StatusOr<v1::Job> Cancel(const std::string& job);
  absl::StatusOr<v1::Job> Pause(const std::string& job);
  absl::StatusOr<v1::Job> Resume(const std::string& job);
  absl::StatusOr<uint64_t> Retry(const std::string& job,
                                 const std::vector<v1::ItemState>& states = {});
  absl::StatusOr<v1::Job> Delete(const std::string& job);
  absl::StatusOr<v1::ExtendJobResponse> Extend(const v1::ExtendJobRequest& request);
  void Tick();

  v1::JobCounts Counts(const std::string& job) const;
  v1::Item Item(const std::string& job, uint32_t number) const;
  std::vector<v1::JobEvent> Events(const std::string& job) const;

  Sequencer& sequencer() { return *sequencer_; }
  FaultTaskStore& store() { return store_; }
  // Of the last batch.
  const Effects& effects() const { return effects_; }
  // Begins a batch of several verbs; Commit ends it.
  Effects& Begin();
  absl::Status Commit();

 private:
  const QueueRules rules_;
  std::mt19937_64 random_;
  MemoryTaskStore memory_;
  FaultTaskStore store_{memory_};
  absl::Duration steady_ = absl::Hours(5);
  absl::Time wall_ = absl::FromUnixSeconds(1'700'000'000);
  DiskState disk_ = DiskState::kOk;
  std::unique_ptr<Sequencer> sequencer_;
  Effects effects_;
};

// CheckStore in words; empty when nothing is wrong.
std::string FindContradiction(const TaskStore& store);

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_QUEUE_QUEUE_FIXTURE_H_
