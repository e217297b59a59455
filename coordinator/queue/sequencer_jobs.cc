// Verbs on jobs.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/queue/item_states.h"
#include "coordinator/queue/sequencer.h"

namespace kmosaic {
namespace {

// In order, so that the same state gives the same rows.
std::vector<uint32_t> NumbersOf(const std::unordered_map<uint32_t, ItemRecord>& items) {
  std::vector<uint32_t> numbers;
  numbers.reserve(items.size());
  for (const auto& [number, item] : items) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

absl::StatusOr<v1::Job> Sequencer::Get(const std::string& id) const {
  KMOSAIC_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(id));
  return ToJob(*job);
}

std::vector<std::pair<uint64_t, v1::Job>> Sequencer::ListBefore(uint64_t before,
                                                                size_t limit) const {
  std::vector<std::pair<uint64_t, v1::Job>> jobs;
  auto at = std::make_reverse_iterator(jobs_.lower_bound(before));
  for (; at != jobs_.rend() && jobs.size() < limit; ++at) {
    jobs.emplace_back(at->first, ToJob(*at->second));
  }
  return jobs;
}

std::vector<std::pair<std::string, std::string>> Sequencer::JobIds() const {
  std::vector<std::pair<std::string, std::string>> ids;
  for (const auto& [number, job] : jobs_) ids.emplace_back(job->id, job->request_id);
  return ids;
}

absl::StatusOr<v1::Job> Sequencer::Cancel(const std::string& id, const StepContext& context,
                                          Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(id));
  if (job->state.cancelled() || job->state.has_finished()) return ToJob(*job);

  job->state.set_cancelled(true);
  Why silent{.event = false};
  for (uint32_t number : NumbersOf(job->items)) {
    ItemRecord& item = job->items.at(number);
    if (item.state == v1::ITEM_STATE_READY || item.state == v1::ITEM_STATE_DELAYED) {
      Move(*job, number, v1::ITEM_STATE_CANCELLED, silent, context, effects);
    } else if (item.state == v1::ITEM_STATE_LEASED) {
      item.lease->latest = context.steady + rules_.cancel_grace;
      effects.ordered.insert(item.lease->runner);
    }
  }
  uint64_t untouched = job->untouched();
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

  std::set<uint32_t> only(request.items().begin(), request.items().end());
  if (revive && !only.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job->id, " is cancelled; retry all of its cancelled items, not single ones"));
  }
  KMOSAIC_ASSIGN_OR_RETURN(std::vector<uint32_t> chosen, TakeFinal(*job, wanted, only));
  std::vector<uint32_t> failed;
  std::vector<uint32_t> cancelled;
  for (uint32_t number : chosen) {
    bool was_cancelled = job->items.at(number).state == v1::ITEM_STATE_CANCELLED;
    (was_cancelled ? cancelled : failed).push_back(number);
  }
  uint64_t untouched = revive ? job->untouched() : 0;
  v1::RetryJobResponse response;
  response.set_retried(failed.size() + cancelled.size() + untouched);
  if (response.retried() == 0 && !revive) return response;

  // Cancelled ones have no events of their own.
  bool announce = revive || job->state.has_finished() || !cancelled.empty();
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
  for (auto& [number, item] : job.items) {
    if (item.lease == nullptr) continue;
    item.lease->latest = absl::InfiniteDuration();
    item.lease->cancel_told = false;
  }
  AddToCount(*job.state.mutable_counts(), v1::ITEM_STATE_CANCELLED,
             -static_cast<int64_t>(untouched));
  AddToCount(*job.state.mutable_counts(), v1::ITEM_STATE_READY, static_cast<int64_t>(untouched));
  open_items_ += untouched;
}

absl::StatusOr<std::vector<uint32_t>> Sequencer::TakeFinal(JobRecord& job,
                                                           const std::set<v1::ItemState>& wanted,
                                                           const std::set<uint32_t>& only) {
  const v1::JobCounts& counts = job.state.counts();
  uint64_t left = 0;
  for (v1::ItemState state : wanted) left += CountOf(counts, state);
  // Those of this batch are in memory, and what the disk says of them is out of date.
  std::set<uint32_t> chosen;
  for (const auto& [number, item] : job.items) {
    if (wanted.count(item.state) == 0 || (!only.empty() && only.count(number) == 0)) continue;
    chosen.insert(number);
  }
  left -= chosen.size();
  std::unique_ptr<StoreSnapshot> snapshot = left == 0 ? nullptr : store_.Snapshot();
  auto take = [&](uint32_t number, std::string_view row) -> absl::Status {
    if (job.items.count(number) > 0) return absl::OkStatus();
    v1::StoredItem stored;
    if (!stored.ParseFromArray(row.data(), static_cast<int>(row.size()))) {
      return absl::DataLossError("the store contradicts itself: an item row cannot be read");
    }
    if (wanted.count(stored.state()) == 0) return absl::OkStatus();
    job.items.emplace(number, FromStored(stored));
    chosen.insert(number);
    return absl::OkStatus();
  };
  auto take_one = [&](uint32_t number) -> absl::Status {
    absl::StatusOr<std::string> row = snapshot->Get(Family::kItem, keys::Item(job.number, number));
    if (absl::IsNotFound(row.status())) return absl::OkStatus();
    if (!row.ok()) return row.status();
    return take(number, *row);
  };
  if (left > 0 && !only.empty()) {
    for (uint32_t number : only) KMOSAIC_RETURN_IF_ERROR(take_one(number));
  } else if (left > 0) {
    // FAILED and DEAD ones have an index; only CANCELLED ones are searched for.
    bool search = wanted.count(v1::ITEM_STATE_CANCELLED) > 0;
    std::unique_ptr<StoreCursor> cursor =
        snapshot->Scan(search ? Family::kItem : Family::kDeadLetter, keys::OfJob(job.number));
    for (; cursor->Valid(); cursor->Next()) {
      std::optional<keys::Numbered> key = keys::ParseNumbered(cursor->key());
      if (!key.has_value()) continue;
      KMOSAIC_RETURN_IF_ERROR(search ? take(key->number, cursor->value()) : take_one(key->number));
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
  }
  return std::vector<uint32_t>(chosen.begin(), chosen.end());
}

void Sequencer::RetryItem(JobRecord& job, uint32_t number, const Why& why,
                          const StepContext& context, Effects& effects) {
  ItemRecord& item = job.items.at(number);
  item.ended = v1::ATTEMPT_END_UNSPECIFIED;
  item.charged_attempts = 0;
  item.deaths_since_step = 0;
  item.blame_since_step = 0;
  item.infrastructure_failures = 0;
  item.failed_workers.clear();
  effects.batch.Delete(Family::kResult, keys::Item(job.number, number));
  Move(job, number, v1::ITEM_STATE_READY, why, context, effects);
}

absl::StatusOr<v1::PurgeDeadLettersResponse> Sequencer::Purge(
    const v1::PurgeDeadLettersRequest& request, const StepContext& context, Effects& effects) {
  KMOSAIC_ASSIGN_OR_RETURN(JobRecord * job, FindJob(request.id()));
  std::set<uint32_t> only(request.items().begin(), request.items().end());
  KMOSAIC_ASSIGN_OR_RETURN(std::vector<uint32_t> chosen,
                           TakeFinal(*job, {v1::ITEM_STATE_FAILED, v1::ITEM_STATE_DEAD}, only));
  for (uint32_t number : chosen) {
    ItemRecord& item = job->items.at(number);
    for (uint32_t step = 0; step < item.steps; ++step) {
      effects.batch.Delete(Family::kStep, keys::Step(job->number, number, step));
    }
    uint32_t oldest = item.attempts - std::min(item.attempts - 1, rules_.max_history);
    for (uint32_t attempt = oldest; attempt < item.attempts; ++attempt) {
      effects.batch.Delete(Family::kAttempt, keys::Attempt(job->number, number, attempt));
    }
    v1::JobCounts& counts = *job->state.mutable_counts();
    counts.set_steps(counts.steps() - item.steps);
    item.steps = 0;
    item.step_bytes = 0;
    Move(*job, number, v1::ITEM_STATE_CANCELLED, {.reason = "given up: purged"}, context, effects);
    settled_.emplace_back(job->number, number);
  }
  v1::PurgeDeadLettersResponse response;
  response.set_purged(chosen.size());
  return response;
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
  for (const auto& [number, item] : job->items) {
    delays_.erase({item.due, job->number, number});
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
