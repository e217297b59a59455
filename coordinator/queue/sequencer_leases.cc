// Verbs of runners, and what time does to leases.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "coordinator/queue/backoff.h"
#include "coordinator/queue/item_states.h"
#include "coordinator/queue/sequencer.h"

namespace kmosaic {
namespace {

// Words about a failure that are kept; the rest is in logs.
constexpr size_t kMaxReasonBytes = 4096;
constexpr size_t kMaxStepBytes = 16u << 20;
// StoredItem.blame_since_step counts in parts of it.
constexpr uint32_t kWholeBlame = 1'000'000;

std::string Capped(const std::string& text) {
  return ElideMiddle(ToValidUtf8(text), kMaxReasonBytes);
}

std::string NameOf(const v1::LeaseToken& token) {
  return absl::StrCat("item ", token.item().job(), "/", token.item().number());
}

}  // namespace

Sequencer::Held Sequencer::FindNewest(const v1::LeaseToken& token) const {
  auto found = jobs_by_id_.find(token.item().job());
  if (found == jobs_by_id_.end()) return {};
  JobRecord* job = found->second;
  uint32_t number = token.item().number();
  auto item = job->items.find(number);
  if (item == job->items.end() || !IsOf(token, item->second.lease_epoch, item->second.attempts)) {
    return {};
  }
  return {job, number, &item->second};
}

bool Sequencer::IsOf(const v1::LeaseToken& token, uint64_t epoch, uint32_t attempt) const {
  return token.incarnation() == identity_.incarnation && token.epoch() == epoch &&
         token.attempt() == attempt;
}

absl::StatusOr<v1::AttemptEnd> Sequencer::EndOf(const v1::LeaseToken& token) const {
  Held held = FindNewest(token);
  if (held.item != nullptr) return held.item->ended;
  auto job = jobs_by_id_.find(token.item().job());
  // Without a job, or in memory with another newest attempt, it is not one that counts.
  if (job == jobs_by_id_.end() || job->second->items.count(token.item().number()) > 0 ||
      token.incarnation() != identity_.incarnation) {
    return v1::ATTEMPT_END_UNSPECIFIED;
  }
  absl::StatusOr<std::string> row =
      store_.Get(Family::kItem, keys::Item(job->second->number, token.item().number()));
  if (absl::IsNotFound(row.status())) return v1::ATTEMPT_END_UNSPECIFIED;
  if (!row.ok()) return row.status();
  v1::StoredItem stored;
  if (!stored.ParseFromString(*row)) {
    return absl::DataLossError("the store contradicts itself: an item row cannot be read");
  }
  return IsOf(token, stored.lease_epoch(), stored.attempts()) ? stored.ended()
                                                              : v1::ATTEMPT_END_UNSPECIFIED;
}

absl::StatusOr<Sequencer::Held> Sequencer::FindHeld(const v1::LeaseToken& token, const char* verb,
                                                    Effects& effects) const {
  Held held = FindNewest(token);
  if (held.item != nullptr && held.item->state == v1::ITEM_STATE_LEASED) return held;
  effects.stale_verbs.push_back(verb);
  return absl::FailedPreconditionError(
      absl::StrCat("attempt ", token.attempt(), " is not the current lease of ", NameOf(token),
                   ": it ended, another holder has the item, or the item is gone; drop it"));
}

void Sequencer::SetDeadline(const JobRecord& job, uint32_t number, absl::Duration deadline) {
  LeaseRecord& lease = *job.items.at(number).lease;
  deadlines_.erase({lease.deadline, job.number, number});
  lease.deadline = std::min(deadline, lease.latest);
  deadlines_.emplace(lease.deadline, job.number, number);
}

void Sequencer::Renew(const Held& held, const StepContext& context) {
  SetDeadline(*held.job, held.number, context.steady + rules_.lease_ttl);
  holdings_.at(held.item->lease->runner).at_death = 0;
}

absl::StatusOr<SyncResult> Sequencer::Sync(const v1::RunnerSyncRequest& request,
                                           const StepContext& context, Effects& effects,
                                           uint32_t most) {
  if (request.runner().empty()) {
    return absl::InvalidArgumentError("runner: a runner has to give its id");
  }
  RunnerRecord& runner = runners_[request.runner()];
  runner.heard = context.steady;
  runner.shown.set_id(request.runner());
  runner.shown.set_version(request.version());
  runner.shown.set_held(static_cast<uint32_t>(request.held_size()));
  runner.shown.set_free(request.free());
  runner.shown.set_draining(request.draining());
  runner.shown.set_http_endpoint(request.http_endpoint());
  *runner.shown.mutable_last_sync() = ToTimestamp(context.wall);
  for (const v1::LeaseToken& token : request.held()) {
    Held held = FindNewest(token);
    if (held.item != nullptr && held.item->state == v1::ITEM_STATE_LEASED) Renew(held, context);
  }
  return Poll(request, context, effects, most);
}

absl::StatusOr<SyncResult> Sequencer::Poll(const v1::RunnerSyncRequest& request,
                                           const StepContext& context, Effects& effects,
                                           uint32_t most) {
  SyncResult result;
  for (const v1::LeaseToken& token : request.held()) {
    v1::HeldLease& answer = result.held.emplace_back();
    *answer.mutable_token() = token;
    Held held = FindNewest(token);
    if (held.item == nullptr || held.item->state != v1::ITEM_STATE_LEASED) {
      answer.set_order(v1::LEASE_ORDER_LOST);
      result.urgent = true;
    } else if (held.job->state.cancelled()) {
      answer.set_order(v1::LEASE_ORDER_CANCEL);
      // Told again with every Sync, but in a hurry only once.
      result.urgent |= !held.item->lease->cancel_told;
      held.item->lease->cancel_told = true;
    } else {
      answer.set_order(v1::LEASE_ORDER_KEEP);
    }
  }
  if (request.draining() || context.disk == DiskState::kReadOnly) return result;
  uint32_t wanted = std::min({request.free(), rules_.max_grants, most});
  size_t bytes = 0;
  std::set<uint64_t> jobs;
  while (result.granted.size() < wanted) {
    std::optional<uint64_t> number = fair_.Pick();
    if (!number.has_value()) break;
    JobRecord& job = *jobs_.at(*number);
    bytes += GrantBytes(job) + (jobs.insert(*number).second ? job.spec_bytes : 0);
    if (bytes > rules_.max_grant_bytes && !result.granted.empty()) break;
    result.granted.push_back(GrantNext(job, request.runner(), context, effects));
  }
  result.urgent |= !result.granted.empty();
  return result;
}

size_t Sequencer::GrantBytes(const JobRecord& job) const {
  constexpr size_t kTokenAndViews = 256;
  size_t steps = job.returned.empty() ? 0 : job.items.at(*job.returned.begin()).step_bytes;
  return job.state.largest_task() + steps + kTokenAndViews;
}

GrantedItem Sequencer::GrantNext(JobRecord& job, const std::string& runner,
                                 const StepContext& context, Effects& effects) {
  // What was begun goes first.
  uint32_t number = 0;
  if (job.returned.empty()) {
    number = job.state.touched();
    job.state.set_touched(number + 1);
    job.items[number];
  } else {
    number = *job.returned.begin();
  }
  ItemRecord& item = job.items.at(number);
  ++item.attempts;
  item.lease_epoch = identity_.epoch;
  item.ended = v1::ATTEMPT_END_UNSPECIFIED;
  item.lease = std::make_unique<LeaseRecord>();
  item.lease->runner = runner;
  item.lease->started = context.wall;
  item.lease->first_digest = item.steps;
  item.lease->deadline = context.steady + rules_.lease_ttl;
  deadlines_.emplace(item.lease->deadline, job.number, number);
  Holdings& holdings = holdings_[runner];
  ++holdings.leases;
  holdings.at_death = 0;
  fair_.Charge(job.number);
  Move(job, number, v1::ITEM_STATE_LEASED, {.reason = absl::StrCat("granted to ", runner)}, context,
       effects);

  GrantedItem granted;
  granted.token.mutable_item()->set_job(job.id);
  granted.token.mutable_item()->set_number(number);
  granted.token.set_incarnation(identity_.incarnation);
  granted.token.set_epoch(item.lease_epoch);
  granted.token.set_attempt(item.attempts);
  granted.job_number = job.number;
  granted.item = number;
  granted.place = PlaceOf(*job.spec, number);
  granted.steps = item.steps;
  granted.spec = job.spec;
  return granted;
}

absl::Status Sequencer::CheckStep(const v1::Step& step) const {
  if (step.kind_case() == v1::Step::KIND_NOT_SET) {
    return absl::InvalidArgumentError("step: it holds neither a reply nor a result");
  }
  if ((step.number() % 2 == 0) != step.has_reply()) {
    return absl::InvalidArgumentError(absl::StrCat("step: number ", step.number(), " has to be a ",
                                                   step.has_reply() ? "result" : "reply",
                                                   "; replies and results alternate from 0"));
  }
  if (size_t bytes = step.ByteSizeLong(); bytes > kMaxStepBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("step: ", bytes, " bytes; at most ", kMaxStepBytes, " are kept"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Sequencer::StepDigest(const Held& held, uint32_t step) const {
  const LeaseRecord& lease = *held.item->lease;
  if (step >= lease.first_digest) return lease.digests[step - lease.first_digest];
  KMOSAIC_ASSIGN_OR_RETURN(
      std::string row, store_.Get(Family::kStep, keys::Step(held.job->number, held.number, step)));
  v1::StoredStep stored;
  if (!stored.ParseFromString(row)) {
    return absl::DataLossError("the store contradicts itself: a step row cannot be read");
  }
  return stored.digest();
}

absl::Status Sequencer::RecordStep(const v1::RecordStepRequest& request, const StepContext& context,
                                   Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(Held held, FindHeld(request.token(), "record_step", effects));
  const v1::Step& step = request.step();
  KMOSAIC_RETURN_IF_ERROR(CheckStep(step));
  JobRecord& job = *held.job;
  ItemRecord& item = *held.item;
  std::string digest = Sha256Hex(SerializeDeterministic(step));
  if (step.number() > item.steps) {
    return absl::OutOfRangeError(absl::StrCat(NameOf(request.token()), " has ", item.steps,
                                              " steps; step ", step.number(),
                                              " would leave a gap"));
  }
  if (step.number() < item.steps) {
    KMOSAIC_ASSIGN_OR_RETURN(std::string known, StepDigest(held, step.number()));
    if (known != digest) {
      return absl::AlreadyExistsError(
          absl::StrCat(NameOf(request.token()), " has another step ", step.number()));
    }
    Renew(held, context);
    return absl::OkStatus();
  }

  v1::StoredStep stored;
  stored.set_digest(digest);
  *stored.mutable_step() = step;
  stored.mutable_step()->set_attempt(item.attempts);
  stored.mutable_step()->set_runner(item.lease->runner);
  if (!step.has_at()) *stored.mutable_step()->mutable_at() = ToTimestamp(context.wall);
  size_t bytes = stored.step().ByteSizeLong();
  if (item.step_bytes + bytes > rules_.max_conversation_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(request.token()), " has ", item.step_bytes, " bytes of steps and this one ", bytes,
        "; at most ", rules_.max_conversation_bytes, " are kept of a conversation"));
  }
  effects.batch.Put(Family::kStep, keys::Step(job.number, held.number, step.number()),
                    stored.SerializeAsString());

  item.lease->digests.push_back(std::move(digest));
  item.steps = step.number() + 1;
  item.step_bytes += bytes;
  item.deaths_since_step = 0;
  item.blame_since_step = 0;
  item.infrastructure_failures = 0;
  item.failed_workers.clear();
  item.updated = context.wall;
  Renew(held, context);
  v1::JobCounts& counts = *job.state.mutable_counts();
  counts.set_steps(counts.steps() + 1);
  ++effects.steps;
  Why why;
  if (step.has_reply()) {
    const v1::Usage& usage = step.reply().usage();
    v1::Usage& total = *counts.mutable_usage();
    total.set_requests(total.requests() + std::max<uint64_t>(usage.requests(), 1));
    total.set_prompt_tokens(total.prompt_tokens() + usage.prompt_tokens());
    total.set_completion_tokens(total.completion_tokens() + usage.completion_tokens());
    total.set_reasoning_tokens(total.reasoning_tokens() + usage.reasoning_tokens());
    total.set_estimated(total.estimated() || usage.estimated());
    total.set_cost_usd(total.cost_usd() + usage.cost_usd());
    effects.prompt_tokens += usage.prompt_tokens();
    effects.completion_tokens += usage.completion_tokens();
  } else {
    const v1::TurnResult& result = step.result();
    why.verdict = result.report().verdict();
    why.reason = Capped(result.has_report() ? result.report().reason() : result.extraction_error());
  }
  SaveItem(job, held.number, effects);
  AppendItemEvent(job, held.number, v1::ITEM_STATE_LEASED, why, context, effects);
  return absl::OkStatus();
}

void Sequencer::EndLease(const Held& held, v1::AttemptEnd how, const std::string& outcome,
                         v1::FailureClass failure, const StepContext& context, Effects& effects) {
  JobRecord& job = *held.job;
  ItemRecord& item = *held.item;
  v1::Attempt attempt;
  attempt.set_number(item.attempts);
  attempt.set_runner(item.lease->runner);
  *attempt.mutable_started() = ToTimestamp(item.lease->started);
  *attempt.mutable_ended() = ToTimestamp(context.wall);
  attempt.set_outcome(outcome);
  attempt.set_failure(failure);
  effects.batch.Put(Family::kAttempt, keys::Attempt(job.number, held.number, item.attempts),
                    attempt.SerializeAsString());
  if (item.attempts > rules_.max_history) {
    effects.batch.Delete(Family::kAttempt, keys::Attempt(job.number, held.number,
                                                         item.attempts - rules_.max_history));
  }
  deadlines_.erase({item.lease->deadline, job.number, held.number});
  auto holdings = holdings_.find(item.lease->runner);
  if (--holdings->second.leases == 0) holdings_.erase(holdings);
  item.lease.reset();
  item.ended = how;
}

void Sequencer::Settle(const Held& held, v1::ItemState to, const Why& why,
                       const StepContext& context, Effects& effects) {
  v1::ItemState actual = held.job->state.cancelled() ? v1::ITEM_STATE_CANCELLED : to;
  Move(*held.job, held.number, actual, why, context, effects);
  FinishJobIfOver(*held.job, context, effects);
}

absl::Status Sequencer::Complete(const v1::CompleteRequest& request, const StepContext& context,
                                 Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  bool stopped = request.result().stop_reason() == v1::STOP_REASON_CANCELLED;
  KMOSAIC_ASSIGN_OR_RETURN(v1::AttemptEnd ended, EndOf(request.token()));
  if (ended == v1::ATTEMPT_END_COMPLETED || (stopped && ended == v1::ATTEMPT_END_RELEASED)) {
    return absl::OkStatus();
  }
  KMOSAIC_ASSIGN_OR_RETURN(Held held, FindHeld(request.token(), "complete", effects));
  bool cancelled = held.job->state.cancelled();
  if (stopped && !cancelled) {
    // The job was retried after its holder had been told to stop: as a Release.
    EndLease(held, v1::ATTEMPT_END_RELEASED, "stopped by a cancel that was taken back",
             v1::FAILURE_CLASS_UNSPECIFIED, context, effects);
    Settle(held, v1::ITEM_STATE_READY, {.reason = "stopped by a cancel that was taken back"},
           context, effects);
    return absl::OkStatus();
  }
  v1::ItemResult result = request.result();
  result.set_reason(Capped(result.reason()));
  if (cancelled) {
    result.set_stop_reason(v1::STOP_REASON_CANCELLED);
    result.set_verified(false);
    result.clear_best_step();
  } else if (result.verified()) {
    v1::JobCounts& counts = *held.job->state.mutable_counts();
    counts.set_verified(counts.verified() + 1);
  }
  effects.batch.Put(Family::kResult, keys::Item(held.job->number, held.number),
                    result.SerializeAsString());
  EndLease(held, v1::ATTEMPT_END_COMPLETED, cancelled ? "cancelled" : "completed",
           v1::FAILURE_CLASS_UNSPECIFIED, context, effects);
  Settle(held, v1::ITEM_STATE_DONE,
         {.reason = cancelled ? "cancelled" : result.reason(), .verdict = result.verdict()},
         context, effects);
  return absl::OkStatus();
}

absl::Status Sequencer::Release(const v1::ReleaseRequest& request, const StepContext& context,
                                Effects& effects) {
  KMOSAIC_RETURN_IF_ERROR(CheckDisk(context));
  KMOSAIC_ASSIGN_OR_RETURN(v1::AttemptEnd ended, EndOf(request.token()));
  if (ended == v1::ATTEMPT_END_RELEASED) return absl::OkStatus();
  KMOSAIC_ASSIGN_OR_RETURN(Held held, FindHeld(request.token(), "release", effects));
  if (request.handed_back()) {
    EndLease(held, v1::ATTEMPT_END_RELEASED, "handed back", v1::FAILURE_CLASS_UNSPECIFIED, context,
             effects);
    Settle(held, v1::ITEM_STATE_READY, {.reason = "handed back"}, context, effects);
    return absl::OkStatus();
  }

  ItemRecord& item = *held.item;
  v1::ItemState to = v1::ITEM_STATE_DELAYED;
  uint32_t failures = 0;
  switch (request.failure()) {
    case v1::FAILURE_CLASS_INFRASTRUCTURE:
      failures = item.infrastructure_failures++;
      if (!request.worker().empty() &&
          std::find(item.failed_workers.begin(), item.failed_workers.end(), request.worker()) ==
              item.failed_workers.end()) {
        item.failed_workers.push_back(request.worker());
      }
      if (item.failed_workers.size() >= rules_.max_failed_workers) to = v1::ITEM_STATE_DEAD;
      break;
    case v1::FAILURE_CLASS_RETRYABLE:
      failures = item.charged_attempts++;
      if (item.charged_attempts >= held.job->spec->max_attempts()) to = v1::ITEM_STATE_FAILED;
      break;
    case v1::FAILURE_CLASS_FINAL:
      ++item.charged_attempts;
      to = v1::ITEM_STATE_FAILED;
      break;
    default:
      return absl::InvalidArgumentError(
          "failure: say which class of failure it is, or set handed_back");
  }
  std::string outcome = absl::StrCat("failed: ", Capped(request.reason()));
  if (!request.worker().empty()) absl::StrAppend(&outcome, " (worker ", request.worker(), ")");
  EndLease(held, v1::ATTEMPT_END_RELEASED, outcome, request.failure(), context, effects);
  if (to == v1::ITEM_STATE_DELAYED) {
    absl::Duration wait =
        std::max(FullJitter(failures, rules_.backoff_base, rules_.backoff_cap, context.random()),
                 FromProtoDuration(request.delay()));
    item.due = context.steady + wait;
    item.not_before = context.wall + wait;
  }
  Settle(held, to, {.reason = outcome}, context, effects);
  return absl::OkStatus();
}

absl::Status Sequencer::CheckLease(const v1::LeaseToken& token, std::string* runner,
                                   std::shared_ptr<const v1::JobSpec>* spec,
                                   Effects& effects) const {
  KMOSAIC_ASSIGN_OR_RETURN(Held held, FindHeld(token, "check_lease", effects));
  if (held.job->state.cancelled()) {
    return absl::CancelledError(absl::StrCat("job ", held.job->id, " was cancelled"));
  }
  *runner = held.item->lease->runner;
  *spec = held.job->spec;
  return absl::OkStatus();
}

void Sequencer::Expire(JobRecord& job, uint32_t number, const StepContext& context,
                       Effects& effects) {
  Held held{&job, number, &job.items.at(number)};
  ItemRecord& item = *held.item;
  ++item.holder_deaths;
  ++item.deaths_since_step;
  item.blame_since_step += BlameOf(item.lease->runner);
  ++effects.expired_leases;
  std::string reason = absl::StrCat("lease expired: ", item.lease->runner, " was not heard of");
  EndLease(held, v1::ATTEMPT_END_EXPIRED, reason, v1::FAILURE_CLASS_UNSPECIFIED, context, effects);
  bool dead = item.deaths_since_step >= rules_.max_holder_deaths ||
              item.blame_since_step >= rules_.max_blame * kWholeBlame;
  Settle(held, dead ? v1::ITEM_STATE_DEAD : v1::ITEM_STATE_READY, {.reason = reason}, context,
         effects);
}

uint32_t Sequencer::BlameOf(const std::string& runner) {
  Holdings& holdings = holdings_.at(runner);
  if (holdings.at_death == 0) holdings.at_death = holdings.leases;
  return (kWholeBlame + holdings.at_death - 1) / holdings.at_death;
}

bool Sequencer::Tick(const StepContext& context, Effects& effects, size_t limit) {
  for (uint64_t number : abandoned_) DropStaging(number, effects);
  abandoned_.clear();
  for (auto runner = runners_.begin(); runner != runners_.end();) {
    bool gone = context.steady - runner->second.heard > rules_.runner_memory;
    runner = gone ? runners_.erase(runner) : std::next(runner);
  }
  if (context.disk == DiskState::kReadOnly) return false;
  for (; !deadlines_.empty() && std::get<0>(*deadlines_.begin()) <= context.steady; --limit) {
    if (limit == 0) return true;
    auto [due, job, number] = *deadlines_.begin();
    Expire(*jobs_.at(job), number, context, effects);
  }
  for (; !delays_.empty() && std::get<0>(*delays_.begin()) <= context.steady; --limit) {
    if (limit == 0) return true;
    auto [due, job, number] = *delays_.begin();
    Move(*jobs_.at(job), number, v1::ITEM_STATE_READY, {.reason = "its delay is over"}, context,
         effects);
  }
  return false;
}

void Sequencer::RenewAll(const StepContext& context) {
  std::set<Due> all = deadlines_;
  for (const auto& [due, job, number] : all) {
    SetDeadline(*jobs_.at(job), number, context.steady + rules_.lease_ttl);
  }
}

absl::Duration Sequencer::NextDue() const {
  absl::Duration next = absl::InfiniteDuration();
  if (!deadlines_.empty()) next = std::min(next, std::get<0>(*deadlines_.begin()));
  if (!delays_.empty()) next = std::min(next, std::get<0>(*delays_.begin()));
  return next;
}

}  // namespace kmosaic
