// Verbs on jobs.
#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/queue/item_states.h"
#include "coordinator/queue/sequencer.h"

namespace kmosaic {
namespace {

constexpr uint32_t kDefaultPage = 50;
constexpr uint32_t kMaxPage = 1000;

// PREFIX + 12 characters of [a-z2-7]: 60 random bits.
std::string JobId(uint64_t random) {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id = "job-";
  for (int i = 0; i < 12; ++i, random >>= 5) id += kAlphabet[random & 31];
  return id;
}

}  // namespace

absl::StatusOr<v1::SubmitResponse> Sequencer::Submit(const Submission& submission,
                                                     const StepContext& context, Effects& effects) {
  v1::SubmitResponse response;
  if (auto known = jobs_by_request_.find(submission.request_id);
      !submission.request_id.empty() && known != jobs_by_request_.end()) {
    const JobRecord& job = *known->second;
    if (job.request_digest != submission.digest) {
      return absl::AlreadyExistsError(absl::StrCat("request id ", submission.request_id,
                                                   " was used for job ", job.id,
                                                   " with other content; use a new request id"));
    }
    *response.mutable_job() = ToJob(job);
    response.set_existed(true);
    return response;
  }
  if (context.disk != DiskState::kOk) {
    return absl::ResourceExhaustedError(
        "the coordinator's disk is almost full and no new jobs are taken; free space on its "
        "data volume or delete jobs, then try again");
  }
  uint64_t items = CountItems(*submission.spec, static_cast<uint32_t>(submission.tasks.size()));
  if (open_items_ + items > rules_.max_open_items) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the job has ", items, " items and ", open_items_, " of at most ",
                     rules_.max_open_items, " are open; try again when some are done"));
  }

  auto owned = std::make_unique<JobRecord>();
  JobRecord& job = *owned;
  job.number = next_job_++;
  do {
    job.id = JobId(context.random());
  } while (jobs_by_id_.count(job.id) > 0);
  job.spec = submission.spec;
  job.shown_spec = WithoutRecordings(*job.spec);
  job.request_id = submission.request_id;
  job.request_digest = submission.digest;
  job.created = context.wall;
  job.total_items = static_cast<uint32_t>(items);
  job.state.mutable_counts()->set_total(items);
  job.state.mutable_counts()->set_ready(items);
  open_items_ += items;

  v1::StoredJob stored;
  stored.set_id(job.id);
  *stored.mutable_spec() = *job.spec;
  stored.set_request_id(job.request_id);
  stored.set_request_digest(job.request_digest);
  *stored.mutable_created() = ToTimestamp(job.created);
  stored.set_tasks(static_cast<uint32_t>(submission.tasks.size()));
  stored.set_items(job.total_items);
  effects.batch.Put(Family::kMeta, keys::kNextJob, absl::StrCat(next_job_));
  effects.batch.Put(Family::kJob, keys::Job(job.number), stored.SerializeAsString());
  effects.batch.Put(Family::kJobId, job.id, keys::Job(job.number));
  for (const SubmittedTask& task : submission.tasks) {
    v1::StoredTask row;
    row.set_id(task.id);
    row.set_digest(task.digest);
    effects.batch.Put(Family::kTask,
                      keys::Task(job.number, static_cast<uint32_t>(job.tasks.size())),
                      row.SerializeAsString());
    if (spec_users_[task.digest]++ == 0) {
      effects.batch.Put(Family::kTaskSpec, task.digest, task.serialized);
    }
    job.tasks.push_back({task.id, task.digest});
  }
  jobs_by_id_[job.id] = &job;
  if (!job.request_id.empty()) jobs_by_request_[job.request_id] = &job;
  jobs_[job.number] = std::move(owned);
  RefreshShare(job);
  AppendJobEvent(job, context, effects);
  *response.mutable_job() = ToJob(job);
  return response;
}

absl::StatusOr<v1::Job> Sequencer::Get(const std::string& id) const {
  KMOSAIC_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(id));
  return ToJob(*job);
}

absl::StatusOr<v1::ListJobsResponse> Sequencer::List(const v1::ListJobsRequest& request) const {
  v1::ListJobsResponse response;
  auto at = jobs_.rbegin();
  if (!request.page_token().empty()) {
    uint64_t before = 0;
    if (!absl::SimpleAtoi(request.page_token(), &before)) {
      return absl::InvalidArgumentError(
          absl::StrCat("page_token '", request.page_token(), "' is not one that a List returned"));
    }
    at = std::make_reverse_iterator(jobs_.lower_bound(before));
  }
  uint32_t size = request.page_size() == 0 ? kDefaultPage : std::min(request.page_size(), kMaxPage);
  for (; at != jobs_.rend() && size > 0; ++at, --size) {
    *response.add_jobs() = ToJob(*at->second);
    response.set_next_page_token(absl::StrCat(at->first));
  }
  if (at == jobs_.rend()) response.clear_next_page_token();
  return response;
}

absl::StatusOr<v1::Job> Sequencer::Cancel(const std::string& id, const StepContext& context,
                                          Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(id));
  if (job->state.cancelled() || job->state.has_finished()) return ToJob(*job);

  job->state.set_cancelled(true);
  Why silent{.event = false};
  for (uint32_t number = 0; number < job->items.size(); ++number) {
    ItemRecord& item = job->items[number];
    if (item.state == v1::ITEM_STATE_READY || item.state == v1::ITEM_STATE_DELAYED) {
      Move(*job, number, v1::ITEM_STATE_CANCELLED, silent, context, effects);
    } else if (item.state == v1::ITEM_STATE_LEASED) {
      item.lease->latest = context.steady + rules_.cancel_grace;
      effects.ordered.insert(item.lease->runner);
    }
  }
  uint64_t untouched = job->total_items - job->items.size();
  AddToCount(*job->state.mutable_counts(), v1::ITEM_STATE_READY, -static_cast<int64_t>(untouched));
  AddToCount(*job->state.mutable_counts(), v1::ITEM_STATE_CANCELLED,
             static_cast<int64_t>(untouched));
  open_items_ -= untouched;
  RefreshShare(*job);
  effects.dirty.insert(job->number);
  if (job->state.counts().leased() > 0) {
    AppendJobEvent(*job, context, effects);
  } else {
    FinishJobIfOver(*job, context, effects);
  }
  return ToJob(*job);
}

absl::StatusOr<v1::Job> Sequencer::Pause(const std::string& id, const StepContext& context,
                                         Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(id));
  if (job->state.cancelled() || job->state.has_finished()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", id, " is ", JobStateName(JobStateOf(job->state)), " and cannot be paused"));
  }
  if (job->state.paused()) return ToJob(*job);
  job->state.set_paused(true);
  RefreshShare(*job);
  AppendJobEvent(*job, context, effects);
  return ToJob(*job);
}

absl::StatusOr<v1::Job> Sequencer::Resume(const std::string& id, const StepContext& context,
                                          Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(id));
  if (job->state.cancelled() || job->state.has_finished()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is ", JobStateName(JobStateOf(job->state)),
                     " and cannot be resumed; Retry brings back what did not get done"));
  }
  if (!job->state.paused()) return ToJob(*job);
  job->state.set_paused(false);
  RefreshShare(*job);
  AppendJobEvent(*job, context, effects);
  return ToJob(*job);
}

absl::StatusOr<v1::RetryJobResponse> Sequencer::Retry(const v1::RetryJobRequest& request,
                                                      const StepContext& context,
                                                      Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(request.id()));
  std::set<v1::ItemState> wanted;
  for (int state : request.states()) wanted.insert(static_cast<v1::ItemState>(state));
  if (wanted.empty()) wanted = {v1::ITEM_STATE_FAILED, v1::ITEM_STATE_DEAD};
  for (v1::ItemState state : wanted) {
    if (!MayMove(state, v1::ITEM_STATE_READY) || !IsFinal(state)) {
      return absl::InvalidArgumentError(
          absl::StrCat("states: ", ItemStateName(state),
                       " items cannot be retried; only failed, dead and cancelled ones can"));
    }
  }
  bool revive = wanted.count(v1::ITEM_STATE_CANCELLED) > 0 && job->state.cancelled();
  if (job->state.cancelled() && !revive) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job->id, " is cancelled; retry its cancelled items too, or submit a new job"));
  }

  std::vector<uint32_t> failed;
  std::vector<uint32_t> cancelled;
  for (uint32_t number = 0; number < job->items.size(); ++number) {
    v1::ItemState state = job->items[number].state;
    if (wanted.count(state) == 0) continue;
    (state == v1::ITEM_STATE_CANCELLED ? cancelled : failed).push_back(number);
  }
  uint64_t untouched = revive ? job->total_items - job->items.size() : 0;
  v1::RetryJobResponse response;
  response.set_retried(failed.size() + cancelled.size() + untouched);
  if (response.retried() == 0 && !revive) return response;

  bool announce = revive || job->state.has_finished();
  job->state.clear_finished();
  if (revive) Revive(*job, untouched);
  for (uint32_t number : cancelled) RetryItem(*job, number, {.event = false}, context, effects);
  RefreshShare(*job);
  if (announce) AppendJobEvent(*job, context, effects);
  for (uint32_t number : failed) {
    RetryItem(*job, number, {.reason = "retried"}, context, effects);
  }
  // Of a revived job perhaps nothing is left to do.
  FinishJobIfOver(*job, context, effects);
  return response;
}

void Sequencer::Revive(JobRecord& job, uint64_t untouched) {
  job.state.set_cancelled(false);
  for (ItemRecord& item : job.items) {
    if (item.lease == nullptr) continue;
    item.lease->latest = absl::InfiniteDuration();
    item.lease->cancel_told = false;
  }
  AddToCount(*job.state.mutable_counts(), v1::ITEM_STATE_CANCELLED,
             -static_cast<int64_t>(untouched));
  AddToCount(*job.state.mutable_counts(), v1::ITEM_STATE_READY, static_cast<int64_t>(untouched));
  open_items_ += untouched;
}

void Sequencer::RetryItem(JobRecord& job, uint32_t number, const Why& why,
                          const StepContext& context, Effects& effects) {
  ItemRecord& item = job.items[number];
  item.ended = v1::ATTEMPT_END_UNSPECIFIED;
  item.charged_attempts = 0;
  item.deaths_since_step = 0;
  item.infrastructure_failures = 0;
  item.failed_workers.clear();
  effects.batch.Delete(Family::kResult, keys::Item(job.number, number));
  Move(job, number, v1::ITEM_STATE_READY, why, context, effects);
}

absl::StatusOr<v1::Job> Sequencer::Delete(const std::string& id, Effects& effects) {
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(id));
  if (job->state.counts().leased() > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " has ", job->state.counts().leased(),
                     " leased items; cancel it and wait until its holders have stopped"));
  }
  v1::Job last = ToJob(*job);
  for (Family family : kJobFamilies) {
    effects.batch.DeleteRange(family, keys::OfJob(job->number));
  }
  effects.batch.Delete(Family::kJobId, job->id);
  for (const TaskRecord& task : job->tasks) {
    auto users = spec_users_.find(task.digest);
    if (--users->second > 0) continue;
    spec_users_.erase(users);
    effects.batch.Delete(Family::kTaskSpec, task.digest);
  }
  for (uint32_t number = 0; number < job->items.size(); ++number) {
    delays_.erase({job->items[number].due, job->number, number});
  }
  open_items_ -= job->state.counts().ready() + job->state.counts().delayed();
  fair_.Remove(job->number);
  effects.dirty.erase(job->number);
  effects.changed.insert(job->id);
  jobs_by_id_.erase(job->id);
  if (!job->request_id.empty()) jobs_by_request_.erase(job->request_id);
  jobs_.erase(job->number);
  return last;
}

}  // namespace kmosaic
