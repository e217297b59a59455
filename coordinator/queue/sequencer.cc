#include "coordinator/queue/sequencer.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "coordinator/queue/item_states.h"

namespace kmosaic {
namespace {

absl::Status Contradiction(const std::string& what) {
  return absl::DataLossError(
      absl::StrCat("the store contradicts itself: ", what, "; restore a backup"));
}

template <typename Message>
absl::Status Parse(std::string_view bytes, const char* what, Message& message) {
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return Contradiction(absl::StrCat("a ", what, " row cannot be read"));
}

}  // namespace

Sequencer::Sequencer(const QueueRules& rules, const StoreIdentity& identity, const TaskStore& store)
    : rules_(rules), identity_(identity), store_(store), fair_(rules.ageing_grants) {}

absl::StatusOr<std::unique_ptr<Sequencer>> Sequencer::Load(const QueueRules& rules,
                                                           const StoreIdentity& identity,
                                                           const TaskStore& store,
                                                           const StepContext& now) {
  std::unique_ptr<Sequencer> sequencer(new Sequencer(rules, identity, store));
  std::unique_ptr<StoreSnapshot> snapshot = store.Snapshot();
  absl::StatusOr<std::string> next_job = snapshot->Get(Family::kMeta, keys::kNextJob);
  if (next_job.ok()) {
    if (!absl::SimpleAtoi(*next_job, &sequencer->next_job_)) {
      return Contradiction("meta entry next_job is not a number");
    }
  } else if (!absl::IsNotFound(next_job.status())) {
    return next_job.status();
  }
  std::unique_ptr<StoreCursor> cursor = snapshot->Scan(Family::kJob, {"", ""});
  for (; cursor->Valid(); cursor->Next()) {
    std::optional<uint64_t> number = keys::ParseJob(cursor->key());
    if (!number.has_value() || *number >= sequencer->next_job_) {
      return Contradiction("a job's key is not one that was given");
    }
    KMOSAIC_RETURN_IF_ERROR(sequencer->LoadJob(*number, cursor->value(), *snapshot, now));
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  KMOSAIC_RETURN_IF_ERROR(sequencer->LoadStaging(*snapshot));
  return sequencer;
}

absl::Status Sequencer::LoadJob(uint64_t number, std::string_view row,
                                const StoreSnapshot& snapshot, const StepContext& now) {
  v1::StoredJob stored;
  KMOSAIC_RETURN_IF_ERROR(Parse(row, "job", stored));
  auto job = std::make_unique<JobRecord>();
  job->number = number;
  job->id = stored.id();
  job->request_id = stored.request_id();
  job->request_digest = stored.request_digest();
  job->created = FromTimestamp(stored.created());
  job->spec = std::make_shared<const v1::JobSpec>(std::move(*stored.mutable_spec()));
  job->spec_bytes = job->spec->ByteSizeLong();
  job->shown_spec = WithoutRecordings(*job->spec);
  KMOSAIC_ASSIGN_OR_RETURN(std::string state, snapshot.Get(Family::kJobState, keys::Job(number)));
  KMOSAIC_RETURN_IF_ERROR(Parse(state, "job_state", job->state));
  KMOSAIC_RETURN_IF_ERROR(LoadItems(*job, snapshot, now));

  const v1::JobCounts& counts = job->state.counts();
  open_items_ += counts.ready() + counts.delayed() + counts.leased();
  JobRecord* record = job.get();
  jobs_by_id_[record->id] = record;
  if (!record->request_id.empty()) jobs_by_request_[record->request_id] = record;
  jobs_[number] = std::move(job);
  RefreshShare(*record);
  return absl::OkStatus();
}

absl::Status Sequencer::LoadItems(JobRecord& job, const StoreSnapshot& snapshot,
                                  const StepContext& now) {
  std::unique_ptr<StoreCursor> cursor = snapshot.Scan(Family::kLive, keys::OfJob(job.number));
  for (; cursor->Valid(); cursor->Next()) {
    std::optional<keys::Numbered> key = keys::ParseNumbered(cursor->key());
    v1::StoredItem stored;
    KMOSAIC_RETURN_IF_ERROR(Parse(cursor->value(), "live", stored));
    if (!key.has_value() || key->number >= job.state.touched() || IsFinal(stored.state())) {
      return Contradiction(absl::StrCat("a live item of job ", job.id, " is none"));
    }
    uint32_t number = key->number;
    ItemRecord& item = job.items.emplace(number, FromStored(stored)).first->second;
    switch (item.state) {
      case v1::ITEM_STATE_READY:
        job.returned.insert(number);
        break;
      case v1::ITEM_STATE_DELAYED:
        item.due = now.steady + std::max(item.not_before - now.wall, absl::ZeroDuration());
        delays_.emplace(item.due, job.number, number);
        break;
      case v1::ITEM_STATE_LEASED:
        if (job.state.cancelled()) item.lease->latest = now.steady + rules_.cancel_grace;
        item.lease->deadline = std::min(now.steady + rules_.lease_ttl, item.lease->latest);
        deadlines_.emplace(item.lease->deadline, job.number, number);
        ++holdings_[item.lease->runner].leases;
        break;
      default:
        break;
    }
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  const v1::JobCounts& counts = job.state.counts();
  uint64_t ready = job.returned.size() + (job.state.cancelled() ? 0 : job.untouched());
  if (job.state.touched() > job.total_items() || counts.ready() != ready ||
      counts.ready() + counts.delayed() + counts.leased() !=
          job.items.size() + ready - job.returned.size()) {
    return Contradiction(
        absl::StrCat("the counters of job ", job.id, " are not those of its live items"));
  }
  return absl::OkStatus();
}

absl::Status Sequencer::LoadStaging(const StoreSnapshot& snapshot) {
  std::unique_ptr<StoreCursor> cursor = snapshot.Scan(Family::kMeta, keys::AllStaging());
  for (; cursor->Valid(); cursor->Next()) {
    uint64_t number = 0;
    std::string_view digits = cursor->key().substr(std::string_view(keys::kStaging).size());
    if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &number)) {
      return Contradiction("a staging entry names no job number");
    }
    abandoned_.push_back(number);
  }
  return cursor->status();
}

absl::StatusOr<JobRecord*> Sequencer::FindJob(const std::string& id) {
  auto found = jobs_by_id_.find(id);
  if (found == jobs_by_id_.end()) return absl::NotFoundError(absl::StrCat("no job ", id));
  return found->second;
}

absl::StatusOr<const JobRecord*> Sequencer::FindJob(const std::string& id) const {
  auto found = jobs_by_id_.find(id);
  if (found == jobs_by_id_.end()) return absl::NotFoundError(absl::StrCat("no job ", id));
  return static_cast<const JobRecord*>(found->second);
}

void Sequencer::SaveItem(const JobRecord& job, uint32_t number, Effects& effects) {
  const ItemRecord& item = job.items.at(number);
  ToStored(item, stored_item_);
  effects.batch.Put(IsFinal(item.state) ? Family::kItem : Family::kLive,
                    keys::Item(job.number, number), stored_item_.SerializeAsString());
}

void Sequencer::Move(JobRecord& job, uint32_t number, v1::ItemState to, const Why& why,
                     const StepContext& context, Effects& effects) {
  ItemRecord& item = job.items.at(number);
  v1::ItemState from = item.state;
  if (!MayMove(from, to) || (item.lease != nullptr) != (to == v1::ITEM_STATE_LEASED)) {
    LogError("broken invariant: an item moves as none may", {{"job", job.id},
                                                             {"item", number},
                                                             {"from", ItemStateName(from)},
                                                             {"to", ItemStateName(to)}});
    std::abort();
  }
  if (from == v1::ITEM_STATE_READY) job.returned.erase(number);
  if (from == v1::ITEM_STATE_DELAYED) delays_.erase({item.due, job.number, number});
  if (to == v1::ITEM_STATE_READY) job.returned.insert(number);
  if (to == v1::ITEM_STATE_DELAYED) delays_.emplace(item.due, job.number, number);
  if (!IsFinal(from) && IsFinal(to)) {
    --open_items_;
    settled_.emplace_back(job.number, number);
    effects.batch.Delete(Family::kLive, keys::Item(job.number, number));
  }
  if (IsFinal(from) && !IsFinal(to)) {
    ++open_items_;
    effects.batch.Delete(Family::kItem, keys::Item(job.number, number));
  }
  if (IsDeadLetter(to)) {
    effects.batch.Put(Family::kDeadLetter, keys::Item(job.number, number), "");
  } else if (IsDeadLetter(from)) {
    effects.batch.Delete(Family::kDeadLetter, keys::Item(job.number, number));
  }

  item.state = to;
  item.updated = context.wall;
  AddToCount(*job.state.mutable_counts(), from, -1);
  AddToCount(*job.state.mutable_counts(), to, 1);
  effects.moves.emplace_back(from, to);
  effects.dirty.insert(job.number);
  SaveItem(job, number, effects);
  RefreshShare(job);
  if (why.event) AppendItemEvent(job, number, from, why, context, effects);
}

void Sequencer::AppendEvent(JobRecord& job, v1::JobEvent& event, const StepContext& context,
                            Effects& effects) {
  job.state.set_last_event(job.state.last_event() + 1);
  event.set_seq(job.state.last_event());
  *event.mutable_at() = ToTimestamp(context.wall);
  *event.mutable_counts() = job.state.counts();
  effects.batch.Put(Family::kEvent, keys::Event(job.number, event.seq()),
                    event.SerializeAsString());
  effects.dirty.insert(job.number);
  effects.changed.insert(job.id);
}

void Sequencer::AppendItemEvent(JobRecord& job, uint32_t number, v1::ItemState from, const Why& why,
                                const StepContext& context, Effects& effects) {
  const ItemRecord& item = job.items.at(number);
  v1::ItemChange& change = *item_event_.mutable_item();
  change.mutable_id()->set_job(job.id);
  change.mutable_id()->set_number(number);
  change.set_from(from);
  change.set_to(item.state);
  change.set_reason(why.reason);
  change.set_verdict(why.verdict);
  change.set_step(item.steps == 0 ? 0 : item.steps - 1);
  AppendEvent(job, item_event_, context, effects);
}

void Sequencer::AppendJobEvent(JobRecord& job, const StepContext& context, Effects& effects) {
  v1::JobEvent event;
  event.set_job_state(JobStateOf(job.state));
  AppendEvent(job, event, context, effects);
}

void Sequencer::FinishJobIfOver(JobRecord& job, const StepContext& context, Effects& effects) {
  const v1::JobCounts& counts = job.state.counts();
  if (job.state.has_finished() || counts.ready() + counts.delayed() + counts.leased() > 0) return;
  *job.state.mutable_finished() = ToTimestamp(context.wall);
  AppendJobEvent(job, context, effects);
}

void Sequencer::RefreshShare(const JobRecord& job) {
  const v1::JobCounts& counts = job.state.counts();
  bool below_cap =
      job.spec->max_concurrency() == 0 || counts.leased() < job.spec->max_concurrency();
  bool active = counts.ready() > 0 && below_cap && !job.state.paused() && !job.state.cancelled();
  fair_.Update(job.number, active, job.spec->priority(), job.spec->weight());
}

absl::Status Sequencer::CheckDisk(const StepContext& context) const {
  if (context.disk != DiskState::kReadOnly) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the coordinator's disk is almost full and nothing is written; free space on its data "
      "volume, then try again");
}

void Sequencer::Finish(Effects& effects) {
  for (uint64_t number : effects.dirty) {
    const JobRecord& job = *jobs_.at(number);
    effects.batch.Put(Family::kJobState, keys::Job(number), job.state.SerializeAsString());
  }
  effects.dirty.clear();
}

void Sequencer::Committed() {
  for (const auto& [number, item] : settled_) {
    auto job = jobs_.find(number);
    if (job == jobs_.end()) continue;
    auto found = job->second->items.find(item);
    // It may have been retried since.
    if (found != job->second->items.end() && IsFinal(found->second.state)) {
      job->second->items.erase(found);
    }
  }
  settled_.clear();
  pending_extensions_.clear();
  for (uint64_t number : fresh_jobs_) {
    auto job = jobs_.find(number);
    if (job != jobs_.end()) job->second->task_ids.reset();
  }
  fresh_jobs_.clear();
}

std::vector<v1::Runner> Sequencer::Runners() const {
  std::vector<v1::Runner> runners;
  for (const auto& [id, runner] : runners_) runners.push_back(runner.shown);
  return runners;
}

v1::JobCounts Sequencer::TotalCounts() const {
  v1::JobCounts total;
  for (const auto& [number, job] : jobs_) {
    for (int state = v1::ITEM_STATE_READY; state <= v1::ITEM_STATE_DEAD; ++state) {
      auto each = static_cast<v1::ItemState>(state);
      AddToCount(total, each, static_cast<int64_t>(CountOf(job->state.counts(), each)));
    }
  }
  return total;
}

std::map<v1::JobState, uint64_t> Sequencer::JobsByState() const {
  std::map<v1::JobState, uint64_t> jobs;
  for (const auto& [number, job] : jobs_) ++jobs[JobStateOf(job->state)];
  return jobs;
}

}  // namespace kmosaic
