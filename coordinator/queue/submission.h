// A job as a client hands it in: checks, and the form in which the queue takes it.
#ifndef KMOSAIC_COORDINATOR_QUEUE_SUBMISSION_H_
#define KMOSAIC_COORDINATOR_QUEUE_SUBMISSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/enum_names.h"

namespace kmosaic {

struct SubmissionLimits {
  uint32_t max_tasks = 1'000'000;
  uint32_t max_items = 10'000'000;
  // Spec and tasks together, serialized.
  size_t max_bytes = 256ull << 20;
};

struct SubmittedTask {
  std::string id;
  uint64_t id_hash = 0;
  // Views that it has: bit 1 << v1::View.
  uint32_t views = 0;
  // TaskSpec, serialized deterministically.
  std::string serialized;
};

// Tells the tasks of a job apart; the same in every process.
uint64_t TaskIdHash(const std::string& id);

// INVALID_ARGUMENT when the job would show a view of its task number `position` that the
// task lacks.
absl::Status CheckTaskViews(const v1::JobSpec& spec, size_t position, const SubmittedTask& task);

// A checked submission.
struct Submission {
  std::string request_id;
  // SHA-256 over the spec and the tasks in their order, hex; how the client cut them into
  // messages does not matter.
  std::string digest;
  std::shared_ptr<const v1::JobSpec> spec;
  std::vector<SubmittedTask> tasks;
  // Bytes of the largest task, and of all.
  uint32_t largest_task = 0;
  size_t task_bytes = 0;
};

// A checked request for more tasks. What depends on the job is checked by the sequencer.
struct Extension {
  std::string job;
  std::string request_id;
  // SHA-256 over the tasks in their order, hex; empty without a request id.
  std::string digest;
  std::vector<SubmittedTask> tasks;
};

// INVALID_ARGUMENT names the field, and the task by position and id.
absl::StatusOr<Extension> MakeExtension(const v1::ExtendJobRequest& request);

// Takes the messages of one Submit stream. One thread at a time.
class SubmissionBuilder {
 public:
  explicit SubmissionBuilder(const SubmissionLimits& limits);

  // INVALID_ARGUMENT names the field, and the task by position and id. RESOURCE_EXHAUSTED
  // names the limit. After an error only destruction is left.
  absl::Status Add(const v1::SubmitRequest& request);

  // After the last message. INVALID_ARGUMENT also when the stream was cut off.
  absl::StatusOr<Submission> Finish();

 private:
  absl::Status AddTask(const v1::TaskSpec& task);

  const SubmissionLimits limits_;
  bool first_ = true;
  uint32_t total_tasks_ = 0;
  size_t bytes_ = 0;
  // Over the spec and the tasks so far.
  Sha256 whole_;
  Submission submission_;
  std::unordered_set<std::string> ids_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_SUBMISSION_H_
