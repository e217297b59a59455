#include "coordinator/queue/queue_shard.h"

#include <algorithm>
#include <iterator>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "coordinator/queue/item_states.h"

namespace kmosaic {
namespace {

// How often gauges and the disk are looked at, and so the longest sleep.
constexpr absl::Duration kHousekeeping = absl::Seconds(1);

absl::Status Stopped() {
  return absl::UnavailableError(
      "the coordinator is stopping; whether this call took effect is open, so repeat it");
}

}  // namespace

QueueShard::QueueShard(const TaskQueueOptions& options, TaskStore& store, const Clock& clock,
                       QueueMetrics& metrics)
    : options_(options), store_(store), clock_(clock), metrics_(metrics), assembler_(store) {}

absl::StatusOr<std::unique_ptr<QueueShard>> QueueShard::Load(const TaskQueueOptions& options,
                                                             TaskStore& store, const Clock& clock,
                                                             QueueMetrics& metrics) {
  std::unique_ptr<QueueShard> shard(new QueueShard(options, store, clock, metrics));
  KMOSAIC_ASSIGN_OR_RETURN(shard->identity_, StartOn(store, RandomId("store")));
  StepContext now{clock.Steady(), clock.Wall(), DiskState::kOk, RandomUint64};
  KMOSAIC_ASSIGN_OR_RETURN(shard->sequencer_,
                           Sequencer::Load(options.rules, shard->identity_, store, now));
  shard->last_look_ = now.steady;
  shard->Housekeep(now.steady);
  return shard;
}

void QueueShard::Begin(OnBatch on_batch) {
  on_batch_ = std::move(on_batch);
  thread_ = std::thread([this] { Run(); });
}

void QueueShard::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

QueueShard::~QueueShard() {
  Stop();
  for (const auto& [state, last] : reported_items_) {
    metrics_.tasks.Add({{"state", ItemStateName(state)}}).Decrement(last);
  }
  for (const auto& [state, last] : reported_jobs_) {
    metrics_.jobs.Add({{"state", JobStateName(state)}}).Decrement(last);
  }
}

void QueueShard::Post(Apply apply, Fail fail) {
  Command command{std::move(apply), std::move(fail), clock_.Steady()};
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      commands_.push_back(std::move(command));
      changed_.notify_one();
      return;
    }
  }
  command.fail(Stopped());
}

void QueueShard::PostStatusVerb(DoneStatus done,
                                std::function<absl::Status(const StepContext&, Effects&)> verb) {
  Fail fail = done;
  Post(
      [done = std::move(done), verb = std::move(verb)](const StepContext& context, Effects& effects)
          -> Reply { return [done, result = verb(context, effects)] { done(result); }; },
      std::move(fail));
}

void QueueShard::Wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

bool QueueShard::TakeBatch(std::vector<Command>& batch, absl::Duration& judged_up_to) {
  batch.clear();
  absl::Duration due = std::min(sequencer_->NextDue(), next_housekeeping_);
  for (const Parked& each : parked_) due = std::min(due, each.until);
  std::unique_lock lock(mutex_);
  absl::Duration sleep = more_due_ ? absl::ZeroDuration() : due - clock_.Steady();
  sleep = std::clamp(sleep, absl::ZeroDuration(), kHousekeeping);
  changed_.wait_for(lock, absl::ToChronoMicroseconds(sleep + absl::Microseconds(1)),
                    [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
                      return stopping_ || woken_ || !commands_.empty();
                    });
  woken_ = false;
  if (stopping_) return false;
  while (!commands_.empty() && batch.size() < options_.max_batch) {
    batch.push_back(std::move(commands_.front()));
    commands_.pop_front();
  }
  // Heartbeats that arrived and were not judged yet keep their leases alive.
  judged_up_to = commands_.empty() ? clock_.Steady() : commands_.front().arrived;
  return true;
}

void QueueShard::Run() {
  std::vector<Command> batch;
  absl::Duration judged_up_to;
  while (TakeBatch(batch, judged_up_to)) {
    StepContext context{clock_.Steady(), clock_.Wall(), disk_, RandomUint64};
    // It looks at the clock at least once a second. A larger gap means that this process
    // stood still, not its runners.
    if (context.steady - last_look_ > options_.rules.sync_interval) {
      LogWarning("the process stood still; every lease gets a full term",
                 {{"seconds", absl::ToDoubleSeconds(context.steady - last_look_)}});
      sequencer_->RenewAll(context);
    }
    last_look_ = context.steady;
    if (context.steady >= next_housekeeping_) Housekeep(context.steady);
    context.disk = disk_;

    Effects effects;
    std::vector<Answer> answers;
    for (Command& command : batch) {
      answers.push_back({command.apply(context, effects), command.fail});
    }
    StepContext due = context;
    due.steady = std::min(judged_up_to, context.steady);
    more_due_ = sequencer_->Tick(due, effects, options_.max_batch);
    PollParked(context, effects, answers);
    std::move(further_answers_.begin(), further_answers_.end(), std::back_inserter(answers));
    further_answers_.clear();
    sequencer_->Finish(effects);
    if (absl::Status status = Commit(effects); !status.ok()) {
      Die(status, answers);
      return;
    }
    sequencer_->Committed();
    if (on_batch_) {
      bool grants = context.disk != DiskState::kReadOnly;
      on_batch_(grants ? sequencer_->Work() : FairShare::Top(), effects.ordered);
    }
    for (Answer& answer : answers) {
      if (answer.ok) answer.ok();
    }
    for (const std::string& job : effects.changed) subscriptions_.Notify(job);
    Report(effects, batch.size());
  }
  std::vector<Answer> none;
  Die(absl::OkStatus(), none);
}

absl::Status QueueShard::Commit(const Effects& effects) {
  if (effects.batch.empty()) return absl::OkStatus();
  absl::Duration before = clock_.Steady();
  KMOSAIC_RETURN_IF_ERROR(store_.Write(effects.batch));
  metrics_.commit_seconds.Observe(absl::ToDoubleSeconds(clock_.Steady() - before));
  metrics_.commits.Increment();
  return absl::OkStatus();
}

void QueueShard::Report(const Effects& effects, size_t count) {
  if (count > 0) metrics_.commit_batch.Observe(static_cast<double>(count));
  for (const auto& [from, to] : effects.moves) {
    metrics_.task_transitions.Add({{"from", ItemStateName(from)}, {"to", ItemStateName(to)}})
        .Increment();
  }
  for (const char* verb : effects.stale_verbs) {
    metrics_.stale_tokens.Add({{"verb", verb}}).Increment();
  }
  metrics_.expired_leases.Increment(static_cast<double>(effects.expired_leases));
  metrics_.steps.Increment(static_cast<double>(effects.steps));
  if (effects.steps > 0) {
    metrics_.recorded_tokens.Add({{"kind", "prompt"}})
        .Increment(static_cast<double>(effects.prompt_tokens));
    metrics_.recorded_tokens.Add({{"kind", "completion"}})
        .Increment(static_cast<double>(effects.completion_tokens));
  }
}

void QueueShard::Report(prometheus::Gauge& gauge, double& last, double now) {
  gauge.Increment(now - std::exchange(last, now));
}

void QueueShard::Housekeep(absl::Duration now) {
  next_housekeeping_ = now + kHousekeeping;
  v1::JobCounts counts = sequencer_->TotalCounts();
  for (int state = v1::ITEM_STATE_READY; state <= v1::ITEM_STATE_DEAD; ++state) {
    auto each = static_cast<v1::ItemState>(state);
    Report(metrics_.tasks.Add({{"state", ItemStateName(each)}}), reported_items_[each],
           static_cast<double>(CountOf(counts, each)));
  }
  std::map<v1::JobState, uint64_t> jobs = sequencer_->JobsByState();
  for (int state = v1::JOB_STATE_RUNNING; state <= v1::JOB_STATE_FINISHED; ++state) {
    auto each = static_cast<v1::JobState>(state);
    Report(metrics_.jobs.Add({{"state", JobStateName(each)}}), reported_jobs_[each],
           static_cast<double>(jobs[each]));
  }
  if (!options_.free_bytes) return;
  absl::StatusOr<uint64_t> free = options_.free_bytes();
  if (!free.ok()) {
    LogWarning("free space is unknown", {{"error", free.status().ToString()}});
    return;
  }
  DiskState judged = JudgeDisk(*free, options_.disk);
  if (judged != disk_) {
    LogWarning("the store's disk state changed",
               {{"free_bytes", *free}, {"state", static_cast<int>(judged)}});
  }
  disk_ = judged;
  metrics_.store_write_state.Set(static_cast<double>(judged));
  metrics_.store_free_bytes.Set(static_cast<double>(*free));
}

void QueueShard::Die(const absl::Status& status, std::vector<Answer>& answers) {
  if (!status.ok()) {
    LogError("the store failed; nothing more is acknowledged and the process has to end",
             {{"error", status.ToString()}});
  }
  std::deque<Command> rest;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    rest.swap(commands_);
  }
  for (Answer& answer : answers) {
    if (answer.ok) answer.fail(Stopped());
  }
  for (Parked& each : parked_) each.done(Stopped());
  parked_.clear();
  for (Command& command : rest) command.fail(Stopped());
  if (!status.ok() && options_.on_fatal) options_.on_fatal(status);
}

}  // namespace kmosaic
