#include "coordinator/queue/task_queue.h"

#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/log/log.h"
#include "coordinator/queue/item_states.h"
#include "coordinator/queue/lease_assembler.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/queue/records.h"
#include "coordinator/queue/sequencer.h"
#include "coordinator/queue/subscriptions.h"

namespace kmosaic {
namespace {

// How often gauges and the disk are looked at, and so the longest sleep.
constexpr absl::Duration kHousekeeping = absl::Seconds(1);

absl::Status Stopped() {
  return absl::UnavailableError(
      "the coordinator is stopping; whether this call took effect is open, so repeat it");
}

// What is to be said to one caller: `ok` once the batch is durable, otherwise `fail`.
struct Reply {
  std::function<void()> ok;
  std::function<void(absl::Status)> fail;
};

struct Command {
  // Judges the request and returns what to say once the batch is durable; null: later.
  std::function<std::function<void()>(const StepContext&, Effects&)> apply;
  std::function<void(absl::Status)> fail;
  absl::Duration arrived;
};

// A Sync that is held back.
struct Parked {
  uint64_t ticket = 0;
  v1::RunnerSyncRequest request;
  TaskQueue::Done<v1::RunnerSyncResponse> done;
  absl::Duration until;
  std::shared_ptr<QueueSession> session;
};

void SetStatus(const absl::Status& status, v1::CallStatus& wire) {
  wire.set_code(static_cast<int32_t>(status.code()));
  wire.set_message(std::string(status.message()));
}

}  // namespace

struct TaskQueue::Impl {
  Impl(const TaskQueueOptions& given, TaskStore& task_store, const Clock& the_clock,
       QueueMetrics& the_metrics)
      : options(given),
        store(task_store),
        clock(the_clock),
        metrics(the_metrics),
        assembler(task_store) {}

  // Callers' side.
  void Post(Command command);
  template <typename T>
  void PostVerb(Done<T> done, std::function<absl::StatusOr<T>(const StepContext&, Effects&)> verb);
  void PostStatusVerb(DoneStatus done,
                      std::function<absl::Status(const StepContext&, Effects&)> verb);

  // The queue's thread.
  void Run();
  // Waits for commands or the next thing that is due; false when stopping.
  bool TakeBatch(std::vector<Command>& batch, absl::Duration& judged_up_to);
  std::function<void()> ApplySync(uint64_t ticket, v1::RunnerSyncRequest request,
                                  std::shared_ptr<QueueSession> session,
                                  Done<v1::RunnerSyncResponse> done, const StepContext& context,
                                  Effects& effects);
  std::function<void()> SyncAnswer(SyncResult result, std::shared_ptr<QueueSession> session,
                                   Done<v1::RunnerSyncResponse> done);
  std::function<void()> ApplyExchange(const v1::SessionRequest& request,
                                      const std::shared_ptr<QueueSession>& session,
                                      const DoneExchange& done, const StepContext& context,
                                      Effects& effects);
  // Ends those that `which` picks.
  void EndParked(const std::function<bool(const Parked&)>& which, const absl::Status& status);
  void PollParked(const StepContext& context, Effects& effects, std::vector<Reply>& replies);
  absl::Status Commit(const Effects& effects);
  void Report(const Effects& effects, size_t commands);
  void Housekeep(absl::Duration now);
  // Ends all calls; OK: the queue was asked to stop.
  void Die(const absl::Status& status, std::vector<Reply>& replies);

  const TaskQueueOptions options;
  TaskStore& store;
  const Clock& clock;
  QueueMetrics& metrics;
  StoreIdentity identity;
  Subscriptions subscriptions;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Command> commands ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool woken ABSL_GUARDED_BY(mutex) = false;
  uint64_t next_ticket ABSL_GUARDED_BY(mutex) = 1;

  // The queue's thread alone, once it runs.
  std::unique_ptr<Sequencer> sequencer;
  LeaseAssembler assembler;
  std::list<Parked> parked;
  DiskState disk = DiskState::kOk;
  absl::Duration last_look;
  absl::Duration next_housekeeping;
  bool more_due = false;
  // To callers other than the one whose command is judged.
  std::vector<Reply> further_replies;

  std::thread thread;
};

void TaskQueue::Impl::Post(Command command) {
  command.arrived = clock.Steady();
  {
    std::lock_guard lock(mutex);
    if (!stopping) {
      commands.push_back(std::move(command));
      changed.notify_one();
      return;
    }
  }
  command.fail(Stopped());
}

template <typename T>
void TaskQueue::Impl::PostVerb(
    Done<T> done, std::function<absl::StatusOr<T>(const StepContext&, Effects&)> verb) {
  Command command;
  command.fail = [done](absl::Status status) { done(std::move(status)); };
  command.apply = [done = std::move(done), verb = std::move(verb)](const StepContext& context,
                                                                   Effects& effects) {
    return [done, result = verb(context, effects)] { done(result); };
  };
  Post(std::move(command));
}

void TaskQueue::Impl::PostStatusVerb(
    DoneStatus done, std::function<absl::Status(const StepContext&, Effects&)> verb) {
  Command command;
  command.fail = done;
  command.apply = [done = std::move(done), verb = std::move(verb)](const StepContext& context,
                                                                   Effects& effects) {
    return [done, result = verb(context, effects)] { done(result); };
  };
  Post(std::move(command));
}

bool TaskQueue::Impl::TakeBatch(std::vector<Command>& batch, absl::Duration& judged_up_to) {
  batch.clear();
  absl::Duration due = std::min(sequencer->NextDue(), next_housekeeping);
  for (const Parked& each : parked) due = std::min(due, each.until);
  std::unique_lock lock(mutex);
  absl::Duration sleep = more_due ? absl::ZeroDuration() : due - clock.Steady();
  sleep = std::clamp(sleep, absl::ZeroDuration(), kHousekeeping);
  changed.wait_for(
      lock, absl::ToChronoMicroseconds(sleep + absl::Microseconds(1)),
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping || woken || !commands.empty(); });
  woken = false;
  if (stopping) return false;
  while (!commands.empty() && batch.size() < options.max_batch) {
    batch.push_back(std::move(commands.front()));
    commands.pop_front();
  }
  // Heartbeats that arrived and were not judged yet keep their leases alive.
  judged_up_to = commands.empty() ? clock.Steady() : commands.front().arrived;
  return true;
}

void TaskQueue::Impl::Run() {
  std::vector<Command> batch;
  absl::Duration judged_up_to;
  while (TakeBatch(batch, judged_up_to)) {
    StepContext context{clock.Steady(), clock.Wall(), disk, RandomUint64};
    // It looks at the clock at least once a second. A larger gap means that this process
    // stood still, not its runners.
    if (context.steady - last_look > options.rules.sync_interval) {
      LogWarning("the process stood still; every lease gets a full term",
                 {{"seconds", absl::ToDoubleSeconds(context.steady - last_look)}});
      sequencer->RenewAll(context);
    }
    last_look = context.steady;
    if (context.steady >= next_housekeeping) Housekeep(context.steady);
    context.disk = disk;

    Effects effects;
    std::vector<Reply> replies;
    for (Command& command : batch) {
      replies.push_back({command.apply(context, effects), command.fail});
    }
    StepContext due = context;
    due.steady = std::min(judged_up_to, context.steady);
    more_due = sequencer->Tick(due, effects, options.max_batch);
    PollParked(context, effects, replies);
    std::move(further_replies.begin(), further_replies.end(), std::back_inserter(replies));
    further_replies.clear();
    sequencer->Finish(effects);
    if (absl::Status status = Commit(effects); !status.ok()) {
      Die(status, replies);
      return;
    }
    sequencer->Committed();
    for (Reply& reply : replies) {
      if (reply.ok) reply.ok();
    }
    for (const std::string& job : effects.changed) subscriptions.Notify(job);
    Report(effects, batch.size());
  }
  std::vector<Reply> none;
  Die(absl::OkStatus(), none);
}

std::function<void()> TaskQueue::Impl::SyncAnswer(SyncResult result,
                                                  std::shared_ptr<QueueSession> session,
                                                  Done<v1::RunnerSyncResponse> done) {
  return [this, result = std::move(result), session = std::move(session), done = std::move(done)] {
    absl::StatusOr<v1::RunnerSyncResponse> response =
        assembler.Answer(result, session == nullptr ? nullptr : &session->jobs);
    if (response.ok()) {
      *response->mutable_next_sync() = ToProtoDuration(options.rules.sync_interval);
      for (v1::Lease& lease : *response->mutable_granted()) {
        *lease.mutable_ttl() = ToProtoDuration(options.rules.lease_ttl);
      }
    } else {
      LogError("granted leases cannot be read back from the store",
               {{"error", response.status().ToString()}});
    }
    done(std::move(response));
  };
}

std::function<void()> TaskQueue::Impl::ApplySync(uint64_t ticket, v1::RunnerSyncRequest request,
                                                 std::shared_ptr<QueueSession> session,
                                                 Done<v1::RunnerSyncResponse> done,
                                                 const StepContext& context, Effects& effects) {
  absl::StatusOr<SyncResult> result = sequencer->Sync(request, context, effects);
  if (!result.ok()) return [done, status = result.status()] { done(status); };
  EndParked([&](const Parked& each) { return each.request.runner() == request.runner(); },
            absl::AbortedError("a later Sync of the same runner came in"));
  absl::Duration wait = std::min(FromProtoDuration(request.wait()), options.rules.sync_interval);
  if (result->urgent || wait <= absl::ZeroDuration()) {
    return SyncAnswer(*std::move(result), std::move(session), std::move(done));
  }
  parked.push_back(
      {ticket, std::move(request), std::move(done), context.steady + wait, std::move(session)});
  return nullptr;
}

std::function<void()> TaskQueue::Impl::ApplyExchange(const v1::SessionRequest& request,
                                                     const std::shared_ptr<QueueSession>& session,
                                                     const DoneExchange& done,
                                                     const StepContext& context, Effects& effects) {
  auto answer = std::make_shared<v1::SessionResponse>();
  answer->set_id(request.id());
  for (const v1::RecordStepRequest& step : request.steps()) {
    SetStatus(sequencer->RecordStep(step, context, effects), *answer->add_steps());
  }
  for (const v1::CompleteRequest& completion : request.completions()) {
    SetStatus(sequencer->Complete(completion, context, effects), *answer->add_completions());
  }
  for (const v1::ReleaseRequest& release : request.releases()) {
    SetStatus(sequencer->Release(release, context, effects), *answer->add_releases());
  }
  bool calls = request.steps_size() + request.completions_size() + request.releases_size() > 0;
  if (!request.has_sync()) return [answer, done] { done(std::move(*answer), true); };
  // Whether the sync waits is known when ApplySync returns.
  auto split = std::make_shared<bool>(false);
  auto synced = [answer, split, done](absl::StatusOr<v1::RunnerSyncResponse> sync) {
    if (absl::IsUnavailable(sync.status())) {
      done(sync.status(), true);
      return;
    }
    v1::SessionResponse response;
    if (*split) {
      response.set_id(answer->id());
    } else {
      response = std::move(*answer);
    }
    SetStatus(sync.status(), *response.mutable_sync_status());
    if (sync.ok()) *response.mutable_sync() = *std::move(sync);
    done(std::move(response), true);
  };
  std::function<void()> now =
      ApplySync(0, request.sync(), session, std::move(synced), context, effects);
  if (now != nullptr || !calls) return now;
  *split = true;
  return [calls_answer = *answer, done] { done(calls_answer, false); };
}

void TaskQueue::Impl::EndParked(const std::function<bool(const Parked&)>& which,
                                const absl::Status& status) {
  for (auto each = parked.begin(); each != parked.end();) {
    if (!which(*each)) {
      ++each;
      continue;
    }
    Reply reply;
    reply.ok = [done = each->done, status] { done(status); };
    reply.fail = std::move(each->done);
    further_replies.push_back(std::move(reply));
    each = parked.erase(each);
  }
}

void TaskQueue::Impl::PollParked(const StepContext& context, Effects& effects,
                                 std::vector<Reply>& replies) {
  bool work = sequencer->HasWork();
  for (auto each = parked.begin(); each != parked.end();) {
    bool over = each->until <= context.steady;
    bool may_get = work && each->request.free() > 0 && !each->request.draining();
    if (!over && !may_get && effects.ordered.count(each->request.runner()) == 0) {
      ++each;
      continue;
    }
    absl::StatusOr<SyncResult> result = sequencer->Poll(each->request, context, effects);
    work = sequencer->HasWork();
    if (result.ok() && !result->urgent && !over) {
      ++each;
      continue;
    }
    Reply reply;
    reply.fail = [done = each->done](absl::Status status) { done(std::move(status)); };
    if (result.ok()) {
      reply.ok = SyncAnswer(*std::move(result), each->session, std::move(each->done));
    } else {
      reply.ok = [done = std::move(each->done), status = result.status()] { done(status); };
    }
    replies.push_back(std::move(reply));
    each = parked.erase(each);
  }
}

absl::Status TaskQueue::Impl::Commit(const Effects& effects) {
  if (effects.batch.empty()) return absl::OkStatus();
  absl::Duration before = clock.Steady();
  KMOSAIC_RETURN_IF_ERROR(store.Write(effects.batch));
  metrics.commit_seconds.Observe(absl::ToDoubleSeconds(clock.Steady() - before));
  metrics.commits.Increment();
  return absl::OkStatus();
}

void TaskQueue::Impl::Report(const Effects& effects, size_t count) {
  if (count > 0) metrics.commit_batch.Observe(static_cast<double>(count));
  for (const auto& [from, to] : effects.moves) {
    metrics.task_transitions.Add({{"from", ItemStateName(from)}, {"to", ItemStateName(to)}})
        .Increment();
  }
  for (const char* verb : effects.stale_verbs) {
    metrics.stale_tokens.Add({{"verb", verb}}).Increment();
  }
  metrics.expired_leases.Increment(static_cast<double>(effects.expired_leases));
  metrics.steps.Increment(static_cast<double>(effects.steps));
  if (effects.steps > 0) {
    metrics.recorded_tokens.Add({{"kind", "prompt"}})
        .Increment(static_cast<double>(effects.prompt_tokens));
    metrics.recorded_tokens.Add({{"kind", "completion"}})
        .Increment(static_cast<double>(effects.completion_tokens));
  }
}

void TaskQueue::Impl::Housekeep(absl::Duration now) {
  next_housekeeping = now + kHousekeeping;
  v1::JobCounts counts = sequencer->TotalCounts();
  for (int state = v1::ITEM_STATE_READY; state <= v1::ITEM_STATE_DEAD; ++state) {
    auto each = static_cast<v1::ItemState>(state);
    metrics.tasks.Add({{"state", ItemStateName(each)}})
        .Set(static_cast<double>(CountOf(counts, each)));
  }
  std::map<v1::JobState, uint64_t> jobs = sequencer->JobsByState();
  for (int state = v1::JOB_STATE_RUNNING; state <= v1::JOB_STATE_FINISHED; ++state) {
    auto each = static_cast<v1::JobState>(state);
    metrics.jobs.Add({{"state", JobStateName(each)}}).Set(static_cast<double>(jobs[each]));
  }
  if (!options.free_bytes) return;
  absl::StatusOr<uint64_t> free = options.free_bytes();
  if (!free.ok()) {
    LogWarning("free space is unknown", {{"error", free.status().ToString()}});
    return;
  }
  DiskState judged = JudgeDisk(*free, options.disk);
  if (judged != disk) {
    LogWarning("the store's disk state changed",
               {{"free_bytes", *free}, {"state", static_cast<int>(judged)}});
  }
  disk = judged;
  metrics.store_write_state.Set(static_cast<double>(judged));
  metrics.store_free_bytes.Set(static_cast<double>(*free));
}

void TaskQueue::Impl::Die(const absl::Status& status, std::vector<Reply>& replies) {
  if (!status.ok()) {
    LogError("the store failed; nothing more is acknowledged and the process has to end",
             {{"error", status.ToString()}});
  }
  std::deque<Command> rest;
  {
    std::lock_guard lock(mutex);
    stopping = true;
    rest.swap(commands);
  }
  for (Reply& reply : replies) {
    if (reply.ok) reply.fail(Stopped());
  }
  for (Parked& each : parked) each.done(Stopped());
  parked.clear();
  for (Command& command : rest) command.fail(Stopped());
  if (!status.ok() && options.on_fatal) options.on_fatal(status);
}

// A submission that is too large for one batch: each piece is written with a batch of its
// own, so that others are served in between. Keeps itself alive until it is answered.
class TaskQueue::StagedSubmit : public std::enable_shared_from_this<StagedSubmit> {
 public:
  StagedSubmit(Impl& impl, std::shared_ptr<const Submission> submission,
               Done<v1::SubmitResponse> done)
      : impl_(impl), submission_(std::move(submission)), done_(std::move(done)) {}
  ~StagedSubmit() {
    submission_.reset();
    // Hundreds of MiB in small pieces, which the allocator would keep.
    malloc_trim(0);
  }

  void Begin() {
    Post([this](const StepContext& context, Effects& effects) -> std::function<void()> {
      absl::StatusOr<Sequencer::Staged> staged =
          impl_.sequencer->Stage(*submission_, context, effects);
      if (!staged.ok()) return Last(staged.status());
      if (staged->existed.has_value()) return Last(*std::move(staged->existed));
      number_ = staged->number;
      return [self = shared_from_this()] { self->Next(); };
    });
  }

 private:
  using Apply = std::function<std::function<void()>(const StepContext&, Effects&)>;

  void Post(Apply apply) {
    Command command;
    command.fail = [self = shared_from_this()](absl::Status status) {
      self->done_(std::move(status));
    };
    command.apply = [self = shared_from_this(), apply = std::move(apply)](
                        const StepContext& context, Effects& effects) {
      return apply(context, effects);
    };
    impl_.Post(std::move(command));
  }

  void Next() {
    Post([this](const StepContext& context, Effects& effects) -> std::function<void()> {
      if (first_ == submission_->tasks.size()) {
        return Last(impl_.sequencer->FinishSubmit(number_, *submission_, context, effects));
      }
      first_ = impl_.sequencer->StageTasks(number_, *submission_, first_, effects);
      return [self = shared_from_this()] { self->Next(); };
    });
  }

  std::function<void()> Last(absl::StatusOr<v1::SubmitResponse> result) {
    return [self = shared_from_this(), result = std::move(result)] { self->done_(result); };
  }

  Impl& impl_;
  std::shared_ptr<const Submission> submission_;
  const Done<v1::SubmitResponse> done_;
  uint64_t number_ = 0;
  size_t first_ = 0;
};

TaskQueue::TaskQueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<TaskQueue>> TaskQueue::Start(const TaskQueueOptions& options,
                                                            TaskStore& store, const Clock& clock,
                                                            QueueMetrics& metrics) {
  auto impl = std::make_unique<Impl>(options, store, clock, metrics);
  KMOSAIC_ASSIGN_OR_RETURN(impl->identity, StartOn(store, RandomId("store")));
  StepContext now{clock.Steady(), clock.Wall(), DiskState::kOk, RandomUint64};
  KMOSAIC_ASSIGN_OR_RETURN(impl->sequencer,
                           Sequencer::Load(options.rules, impl->identity, store, now));
  impl->last_look = now.steady;
  impl->Housekeep(now.steady);
  Impl* running = impl.get();
  impl->thread = std::thread([running] { running->Run(); });
  return std::unique_ptr<TaskQueue>(new TaskQueue(std::move(impl)));
}

TaskQueue::~TaskQueue() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->changed.notify_one();
  }
  impl_->thread.join();
}

const StoreIdentity& TaskQueue::identity() const { return impl_->identity; }

const TaskStore& TaskQueue::store() const { return impl_->store; }

void TaskQueue::Submit(Submission submission, Done<v1::SubmitResponse> done) {
  auto shared = std::make_shared<const Submission>(std::move(submission));
  if (shared->task_bytes > impl_->options.stage_bytes) {
    std::make_shared<StagedSubmit>(*impl_, std::move(shared), std::move(done))->Begin();
    return;
  }
  impl_->PostVerb<v1::SubmitResponse>(
      std::move(done), [impl = impl_.get(), shared](const StepContext& context, Effects& effects) {
        return impl->sequencer->Submit(*shared, context, effects);
      });
}

void TaskQueue::Extend(Extension extension, Done<v1::ExtendJobResponse> done) {
  auto shared = std::make_shared<const Extension>(std::move(extension));
  impl_->PostVerb<v1::ExtendJobResponse>(
      std::move(done), [impl = impl_.get(), shared](const StepContext& context, Effects& effects) {
        return impl->sequencer->Extend(*shared, context, effects);
      });
}

void TaskQueue::GetJob(const std::string& id, Done<v1::Job> done) {
  impl_->PostVerb<v1::Job>(std::move(done), [impl = impl_.get(), id](const StepContext&, Effects&) {
    return impl->sequencer->Get(id);
  });
}

void TaskQueue::ListJobs(const v1::ListJobsRequest& request, Done<v1::ListJobsResponse> done) {
  impl_->PostVerb<v1::ListJobsResponse>(
      std::move(done), [impl = impl_.get(), request](const StepContext&, Effects&) {
        return impl->sequencer->List(request);
      });
}

void TaskQueue::Cancel(const std::string& id, Done<v1::Job> done) {
  impl_->PostVerb<v1::Job>(std::move(done),
                           [impl = impl_.get(), id](const StepContext& context, Effects& effects) {
                             return impl->sequencer->Cancel(id, context, effects);
                           });
}

void TaskQueue::Pause(const std::string& id, Done<v1::Job> done) {
  impl_->PostVerb<v1::Job>(std::move(done),
                           [impl = impl_.get(), id](const StepContext& context, Effects& effects) {
                             return impl->sequencer->Pause(id, context, effects);
                           });
}

void TaskQueue::Resume(const std::string& id, Done<v1::Job> done) {
  impl_->PostVerb<v1::Job>(std::move(done),
                           [impl = impl_.get(), id](const StepContext& context, Effects& effects) {
                             return impl->sequencer->Resume(id, context, effects);
                           });
}

void TaskQueue::Retry(const v1::RetryJobRequest& request, Done<v1::RetryJobResponse> done) {
  impl_->PostVerb<v1::RetryJobResponse>(
      std::move(done), [impl = impl_.get(), request](const StepContext& context, Effects& effects) {
        return impl->sequencer->Retry(request, context, effects);
      });
}

void TaskQueue::Delete(const std::string& id, Done<v1::Job> done) {
  impl_->PostVerb<v1::Job>(std::move(done),
                           [impl = impl_.get(), id](const StepContext&, Effects& effects) {
                             return impl->sequencer->Delete(id, effects);
                           });
}

uint64_t TaskQueue::Sync(v1::RunnerSyncRequest request, Done<v1::RunnerSyncResponse> done) {
  uint64_t ticket = 0;
  {
    std::lock_guard lock(impl_->mutex);
    ticket = impl_->next_ticket++;
  }
  Command command;
  command.fail = [done](absl::Status status) { done(std::move(status)); };
  command.apply = [impl = impl_.get(), ticket, request = std::move(request),
                   done = std::move(done)](const StepContext& context, Effects& effects) {
    return impl->ApplySync(ticket, request, nullptr, done, context, effects);
  };
  impl_->Post(std::move(command));
  return ticket;
}

void TaskQueue::CancelSync(uint64_t ticket) {
  Command command;
  command.fail = [](const absl::Status&) {};
  command.apply = [impl = impl_.get(), ticket](const StepContext&,
                                               Effects&) -> std::function<void()> {
    impl->EndParked([&](const Parked& each) { return each.ticket == ticket; },
                    absl::CancelledError("the caller is gone"));
    return nullptr;
  };
  impl_->Post(std::move(command));
}

void TaskQueue::Exchange(v1::SessionRequest request, std::shared_ptr<QueueSession> session,
                         DoneExchange given) {
  // When the queue stops, a message and its Sync that waits both say so.
  DoneExchange done = [given = std::move(given), over = std::make_shared<bool>(false)](
                          absl::StatusOr<v1::SessionResponse> response, bool last) {
    if (*over) return;
    *over = last;
    given(std::move(response), last);
  };
  Command command;
  command.fail = [done](absl::Status status) { done(std::move(status), true); };
  command.apply = [impl = impl_.get(), session = std::move(session),
                   request = std::make_shared<const v1::SessionRequest>(std::move(request)),
                   done = std::move(done)](const StepContext& context, Effects& effects) {
    return impl->ApplyExchange(*request, session, done, context, effects);
  };
  impl_->Post(std::move(command));
}

void TaskQueue::EndSession(std::shared_ptr<QueueSession> session) {
  Command command;
  command.fail = [](const absl::Status&) {};
  command.apply = [impl = impl_.get(), session = std::move(session)](
                      const StepContext&, Effects&) -> std::function<void()> {
    impl->EndParked([&](const Parked& each) { return each.session == session; },
                    absl::CancelledError("the session is over"));
    return nullptr;
  };
  impl_->Post(std::move(command));
}

void TaskQueue::RecordStep(v1::RecordStepRequest request, DoneStatus done) {
  auto shared = std::make_shared<const v1::RecordStepRequest>(std::move(request));
  impl_->PostStatusVerb(std::move(done),
                        [impl = impl_.get(), shared](const StepContext& context, Effects& effects) {
                          return impl->sequencer->RecordStep(*shared, context, effects);
                        });
}

void TaskQueue::Complete(v1::CompleteRequest request, DoneStatus done) {
  impl_->PostStatusVerb(std::move(done), [impl = impl_.get(), request = std::move(request)](
                                             const StepContext& context, Effects& effects) {
    return impl->sequencer->Complete(request, context, effects);
  });
}

void TaskQueue::Release(v1::ReleaseRequest request, DoneStatus done) {
  impl_->PostStatusVerb(std::move(done), [impl = impl_.get(), request = std::move(request)](
                                             const StepContext& context, Effects& effects) {
    return impl->sequencer->Release(request, context, effects);
  });
}

void TaskQueue::CheckLease(const v1::LeaseToken& token, Done<LeaseOwner> done) {
  impl_->PostVerb<LeaseOwner>(
      std::move(done),
      [impl = impl_.get(), token](const StepContext&,
                                  Effects& effects) -> absl::StatusOr<LeaseOwner> {
        LeaseOwner owner;
        KMOSAIC_RETURN_IF_ERROR(
            impl->sequencer->CheckLease(token, &owner.runner, &owner.spec, effects));
        return owner;
      });
}

void TaskQueue::ListRunners(Done<std::vector<v1::Runner>> done) {
  impl_->PostVerb<std::vector<v1::Runner>>(
      std::move(done),
      [impl = impl_.get()](const StepContext&, Effects&)
          -> absl::StatusOr<std::vector<v1::Runner>> { return impl->sequencer->Runners(); });
}

std::unique_ptr<TaskQueue::Subscription> TaskQueue::Subscribe(const std::string& job,
                                                              std::function<void()> on_event) {
  return impl_->subscriptions.Add(job, std::move(on_event));
}

void TaskQueue::Wake() {
  std::lock_guard lock(impl_->mutex);
  impl_->woken = true;
  impl_->changed.notify_one();
}

}  // namespace kmosaic
