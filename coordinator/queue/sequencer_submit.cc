// Verbs that make tasks.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/queue/sequencer.h"

namespace kmosaic {
namespace {

// Rows of one piece of a large submission.
constexpr size_t kStageBytes = 1u << 20;

// PREFIX + 12 characters of [a-z2-7]: 60 random bits.
std::string JobId(uint64_t random) {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id = "job-";
  for (int i = 0; i < 12; ++i, random >>= 5) id += kAlphabet[random & 31];
  return id;
}

void PutTask(uint64_t job, uint32_t number, const SubmittedTask& task, WriteBatch& batch) {
  batch.Put(Family::kTask, keys::Task(job, number), StoredTaskRow(task.serialized));
}

std::string StagingKey(uint64_t number) { return absl::StrCat(keys::kStaging, number); }

}  // namespace

absl::Status Sequencer::CheckRoom(uint64_t items, const StepContext& context) const {
  if (context.disk != DiskState::kOk) {
    return absl::ResourceExhaustedError(
        "the coordinator's disk is almost full and no new jobs are taken; free space on its "
        "data volume or delete jobs, then try again");
  }
  if (open_items_ + items > rules_.max_open_items) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", items, " new items and ", open_items_, " of at most ",
                     rules_.max_open_items, " are open; try again when some are done"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::SubmitResponse>> Sequencer::CheckSubmit(
    const Submission& submission, const StepContext& context) const {
  if (auto known = jobs_by_request_.find(submission.request_id);
      !submission.request_id.empty() && known != jobs_by_request_.end()) {
    const JobRecord& job = *known->second;
    if (job.request_digest != submission.digest) {
      return absl::AlreadyExistsError(absl::StrCat("request id ", submission.request_id,
                                                   " was used for job ", job.id,
                                                   " with other content; use a new request id"));
    }
    v1::SubmitResponse response;
    *response.mutable_job() = ToJob(job);
    response.set_existed(true);
    return std::optional<v1::SubmitResponse>(std::move(response));
  }
  uint64_t items = CountItems(*submission.spec, static_cast<uint32_t>(submission.tasks.size()));
  KMOSAIC_RETURN_IF_ERROR(CheckRoom(items, context));
  return std::optional<v1::SubmitResponse>();
}

absl::StatusOr<v1::SubmitResponse> Sequencer::Submit(const Submission& submission,
                                                     const StepContext& context, Effects& effects) {
  KMOSAIC_ASSIGN_OR_RETURN(std::optional<v1::SubmitResponse> existed,
                           CheckSubmit(submission, context));
  if (existed.has_value()) return *std::move(existed);
  uint64_t number = next_job_++;
  effects.batch.Put(Family::kMeta, keys::kNextJob, absl::StrCat(next_job_));
  for (uint32_t task = 0; task < submission.tasks.size(); ++task) {
    PutTask(number, task, submission.tasks[task], effects.batch);
  }
  v1::SubmitResponse response = MakeJob(number, submission, context, effects);
  // Until the tasks can be read back.
  auto ids = std::make_unique<std::unordered_set<uint64_t>>();
  for (const SubmittedTask& task : submission.tasks) ids->insert(task.id_hash);
  jobs_.at(number)->task_ids = std::move(ids);
  fresh_jobs_.push_back(number);
  return response;
}

absl::StatusOr<Sequencer::Staged> Sequencer::Stage(const Submission& submission,
                                                   const StepContext& context, Effects& effects) {
  Staged staged;
  KMOSAIC_ASSIGN_OR_RETURN(staged.existed, CheckSubmit(submission, context));
  if (staged.existed.has_value()) return staged;
  staged.number = next_job_++;
  effects.batch.Put(Family::kMeta, keys::kNextJob, absl::StrCat(next_job_));
  effects.batch.Put(Family::kMeta, StagingKey(staged.number), "");
  return staged;
}

size_t Sequencer::StageTasks(uint64_t number, const Submission& submission, size_t first,
                             Effects& effects) {
  size_t bytes = 0;
  for (; first < submission.tasks.size() && bytes < kStageBytes; ++first) {
    PutTask(number, static_cast<uint32_t>(first), submission.tasks[first], effects.batch);
    bytes += submission.tasks[first].serialized.size();
  }
  return first;
}

void Sequencer::DropStaging(uint64_t number, Effects& effects) {
  effects.batch.DeleteRange(Family::kTask, keys::OfJob(number));
  effects.batch.Delete(Family::kMeta, StagingKey(number));
}

absl::StatusOr<v1::SubmitResponse> Sequencer::FinishSubmit(uint64_t number,
                                                           const Submission& submission,
                                                           const StepContext& context,
                                                           Effects& effects) {
  // Another submission may have come between.
  absl::StatusOr<std::optional<v1::SubmitResponse>> existed = CheckSubmit(submission, context);
  if (!existed.ok() || existed->has_value()) {
    DropStaging(number, effects);
    if (!existed.ok()) return existed.status();
    return **std::move(existed);
  }
  effects.batch.Delete(Family::kMeta, StagingKey(number));
  return MakeJob(number, submission, context, effects);
}

v1::SubmitResponse Sequencer::MakeJob(uint64_t number, const Submission& submission,
                                      const StepContext& context, Effects& effects) {
  uint64_t items = CountItems(*submission.spec, static_cast<uint32_t>(submission.tasks.size()));
  auto owned = std::make_unique<JobRecord>();
  JobRecord& job = *owned;
  job.number = number;
  do {
    job.id = JobId(context.random());
  } while (jobs_by_id_.count(job.id) > 0);
  job.spec = submission.spec;
  job.spec_bytes = job.spec->ByteSizeLong();
  job.shown_spec = WithoutRecordings(*job.spec);
  job.request_id = submission.request_id;
  job.request_digest = submission.digest;
  job.created = context.wall;
  job.state.mutable_counts()->set_total(items);
  job.state.mutable_counts()->set_ready(items);
  job.state.set_tasks(static_cast<uint32_t>(submission.tasks.size()));
  job.state.set_largest_task(submission.largest_task);
  job.state.set_items_per_task(static_cast<uint32_t>(CountItems(*job.spec, 1)));
  open_items_ += items;

  v1::StoredJob stored;
  stored.set_id(job.id);
  *stored.mutable_spec() = *job.spec;
  stored.set_request_id(job.request_id);
  stored.set_request_digest(job.request_digest);
  *stored.mutable_created() = ToTimestamp(job.created);
  effects.batch.Put(Family::kJob, keys::Job(job.number), stored.SerializeAsString());
  effects.batch.Put(Family::kJobId, job.id, keys::Job(job.number));
  jobs_by_id_[job.id] = &job;
  if (!job.request_id.empty()) jobs_by_request_[job.request_id] = &job;
  jobs_[job.number] = std::move(owned);
  RefreshShare(job);
  AppendJobEvent(job, context, effects);
  v1::SubmitResponse response;
  *response.mutable_job() = ToJob(job);
  return response;
}

absl::Status Sequencer::LoadTaskIds(JobRecord& job) const {
  auto ids = std::make_unique<std::unordered_set<uint64_t>>();
  std::unique_ptr<StoreSnapshot> snapshot = store_.Snapshot();
  std::unique_ptr<StoreCursor> cursor = snapshot->Scan(Family::kTask, keys::OfJob(job.number));
  for (; cursor->Valid(); cursor->Next()) {
    v1::StoredTask task;
    if (!task.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size()))) {
      return absl::DataLossError("the store contradicts itself: a task row cannot be read");
    }
    ids->insert(TaskIdHash(task.spec().id()));
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  job.task_ids = std::move(ids);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::ExtendJobResponse>> Sequencer::FindExtension(
    const JobRecord& job, const Extension& extension) const {
  if (extension.request_id.empty()) return std::optional<v1::ExtendJobResponse>();
  v1::StoredExtension known;
  auto pending = pending_extensions_.find({job.number, extension.request_id});
  if (pending != pending_extensions_.end()) {
    known = pending->second;
  } else {
    absl::StatusOr<std::string> row =
        store_.Get(Family::kExtension, keys::Extension(job.number, extension.request_id));
    if (absl::IsNotFound(row.status())) return std::optional<v1::ExtendJobResponse>();
    if (!row.ok()) return row.status();
    if (!known.ParseFromString(*row)) {
      return absl::DataLossError("the store contradicts itself: an extension row cannot be read");
    }
  }
  if (known.digest() != extension.digest) {
    return absl::AlreadyExistsError(absl::StrCat("request id ", extension.request_id,
                                                 " extended job ", job.id,
                                                 " by other tasks; use a new request id"));
  }
  v1::ExtendJobResponse response;
  response.set_first_item(known.first_item());
  response.set_items(known.items());
  response.set_existed(true);
  return std::optional<v1::ExtendJobResponse>(std::move(response));
}

absl::StatusOr<v1::ExtendJobResponse> Sequencer::Extend(const Extension& extension,
                                                        const StepContext& context,
                                                        Effects& effects) {
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(extension.job));
  KMOSAIC_ASSIGN_OR_RETURN(std::optional<v1::ExtendJobResponse> existed,
                           FindExtension(*job, extension));
  if (existed.has_value()) return *std::move(existed);
  if (job->state.cancelled()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job->id, " is cancelled; retry it first, or submit a new job"));
  }
  uint32_t first = job->state.tasks();
  uint64_t tasks = uint64_t{first} + extension.tasks.size();
  uint64_t total = CountItems(*job->spec, static_cast<uint32_t>(tasks));
  if (tasks > rules_.max_job_tasks || total > rules_.max_job_items) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "job ", job->id, " would have ", tasks, " tasks and ", total, " items; at most ",
        rules_.max_job_tasks, " and ", rules_.max_job_items, " are taken; submit a new job"));
  }
  uint64_t items = total - job->total_items();
  KMOSAIC_RETURN_IF_ERROR(CheckRoom(items, context));
  if (job->task_ids == nullptr) KMOSAIC_RETURN_IF_ERROR(LoadTaskIds(*job));
  for (uint32_t i = 0; i < extension.tasks.size(); ++i) {
    const SubmittedTask& task = extension.tasks[i];
    KMOSAIC_RETURN_IF_ERROR(CheckTaskViews(*job->spec, first + i, task));
    if (job->task_ids->count(task.id_hash) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tasks[", i, "].id: another task of job ", job->id, " is called ", task.id));
    }
  }

  for (uint32_t i = 0; i < extension.tasks.size(); ++i) {
    const SubmittedTask& task = extension.tasks[i];
    PutTask(job->number, first + i, task, effects.batch);
    job->task_ids->insert(task.id_hash);
    job->state.set_largest_task(
        std::max(job->state.largest_task(), static_cast<uint32_t>(task.serialized.size())));
  }
  v1::ExtendJobResponse response;
  response.set_first_item(job->total_items());
  response.set_items(static_cast<uint32_t>(items));
  if (!extension.request_id.empty()) {
    v1::StoredExtension row;
    row.set_digest(extension.digest);
    row.set_first_item(response.first_item());
    row.set_items(response.items());
    effects.batch.Put(Family::kExtension, keys::Extension(job->number, extension.request_id),
                      row.SerializeAsString());
    pending_extensions_[{job->number, extension.request_id}] = std::move(row);
  }
  job->state.set_tasks(static_cast<uint32_t>(tasks));
  v1::JobCounts& counts = *job->state.mutable_counts();
  counts.set_total(total);
  counts.set_ready(counts.ready() + items);
  open_items_ += items;
  job->state.clear_finished();
  RefreshShare(*job);
  AppendJobEvent(*job, context, effects);
  return response;
}

}  // namespace kmosaic
