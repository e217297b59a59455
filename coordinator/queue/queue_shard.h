// One store of the queue, its sequencer, and the thread that runs it.
//
// The thread takes what has gathered, lets the Sequencer judge it, writes everything in one
// synced batch, and only then answers: what was acknowledged is on disk.
#ifndef KMOSAIC_COORDINATOR_QUEUE_QUEUE_SHARD_H_
#define KMOSAIC_COORDINATOR_QUEUE_QUEUE_SHARD_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/queue/lease_assembler.h"
#include "coordinator/queue/queue_metrics.h"
#include "coordinator/queue/sequencer.h"
#include "coordinator/queue/subscriptions.h"
#include "coordinator/queue/task_queue.h"

namespace kmosaic {

// Its jobs whose specs the runner of a session has; touched by the shard's thread alone.
using KnownJobs = std::set<std::string>;

// Thread-safe but for sequencer().
class QueueShard {
 public:
  template <typename T>
  using Done = TaskQueue::Done<T>;
  using DoneStatus = TaskQueue::DoneStatus;
  // What to say once the batch is durable; null: somebody says it later.
  using Reply = std::function<void()>;
  using Fail = std::function<void(absl::Status)>;
  using Apply = std::function<Reply(const StepContext&, Effects&)>;

  // After each batch that is durable and before its replies, at least every second: what the
  // shard could grant now, and the runners that were given an order in the batch.
  using OnBatch =
      std::function<void(const FairShare::Top& work, const std::set<std::string>& ordered)>;

  // Begins a new epoch on `store` and rebuilds the state from it. All must outlive the shard.
  static absl::StatusOr<std::unique_ptr<QueueShard>> Load(const TaskQueueOptions& options,
                                                          TaskStore& store, const Clock& clock,
                                                          QueueMetrics& metrics);
  // Starts the thread. Once.
  void Begin(OnBatch on_batch);
  // Ends the thread and answers every open call with UNAVAILABLE, as later ones are.
  void Stop();
  ~QueueShard();

  const StoreIdentity& identity() const { return identity_; }
  const TaskStore& store() const { return store_; }
  const TaskQueueOptions& options() const { return options_; }
  Subscriptions& subscriptions() { return subscriptions_; }
  // Before Begin, and for what Post runs.
  Sequencer& sequencer() { return *sequencer_; }

  // Has the thread run `apply` as a part of a batch. `fail` instead of its reply when the
  // shard stops or the batch cannot be written.
  void Post(Apply apply, Fail fail);
  template <typename T>
  void PostVerb(Done<T> done, std::function<absl::StatusOr<T>(const StepContext&, Effects&)> verb);
  void PostStatusVerb(DoneStatus done,
                      std::function<absl::Status(const StepContext&, Effects&)> verb);

  // A Sync that this shard answers, or holds back, alone.
  void PostSync(uint64_t ticket, v1::RunnerSyncRequest request, Done<v1::RunnerSyncResponse> done);
  // The same as a part of a message of a session (TaskQueue::Exchange).
  void PostExchange(v1::SessionRequest request, std::shared_ptr<KnownJobs> session,
                    TaskQueue::DoneExchange done);
  // Ends Syncs that are held back: that of a ticket, those of a session.
  void EndSync(uint64_t ticket);
  void EndSyncs(const std::shared_ptr<KnownJobs>& session);

  // Its part of a message that concerns several shards: its calls, and a Sync that is not
  // held back and gets at most `most` leases. `renew`: the runner spoke (Sequencer::Sync),
  // otherwise Poll.
  struct Part {
    v1::SessionResponse response;
    bool urgent = false;
  };
  void PostPart(v1::SessionRequest request, uint32_t most, bool renew,
                std::shared_ptr<KnownJobs> session, Done<Part> done);

  // Looks at the clock again.
  void Wake();

 private:
  struct Answer {
    Reply ok;
    Fail fail;
  };
  struct Command {
    Apply apply;
    Fail fail;
    absl::Duration arrived;
  };
  // A Sync that is held back.
  struct Parked {
    uint64_t ticket = 0;
    v1::RunnerSyncRequest request;
    Done<v1::RunnerSyncResponse> done;
    absl::Duration until;
    std::shared_ptr<KnownJobs> session;
  };

  QueueShard(const TaskQueueOptions& options, TaskStore& store, const Clock& clock,
             QueueMetrics& metrics);

  // queue_shard.cc: batches.
  void Run();
  // Waits for commands or the next thing that is due; false when stopping.
  bool TakeBatch(std::vector<Command>& batch, absl::Duration& judged_up_to);
  absl::Status Commit(const Effects& effects);
  void Report(const Effects& effects, size_t commands);
  void Housekeep(absl::Duration now);
  // Adds what changed since the last time to a gauge that all shards share.
  void Report(prometheus::Gauge& gauge, double& last, double now);
  // Ends all calls; OK: the shard was asked to stop.
  void Die(const absl::Status& status, std::vector<Answer>& answers);

  // queue_shard_syncs.cc: runners.
  absl::StatusOr<v1::RunnerSyncResponse> Assemble(const SyncResult& result, KnownJobs* session);
  Reply SyncAnswer(SyncResult result, std::shared_ptr<KnownJobs> session,
                   Done<v1::RunnerSyncResponse> done);
  Reply ApplySync(uint64_t ticket, v1::RunnerSyncRequest request,
                  std::shared_ptr<KnownJobs> session, Done<v1::RunnerSyncResponse> done,
                  const StepContext& context, Effects& effects);
  void ApplyCalls(const v1::SessionRequest& request, v1::SessionResponse& response,
                  const StepContext& context, Effects& effects);
  Reply ApplyExchange(const v1::SessionRequest& request, const std::shared_ptr<KnownJobs>& session,
                      const TaskQueue::DoneExchange& done, const StepContext& context,
                      Effects& effects);
  // Ends those that `which` picks.
  void EndParked(const std::function<bool(const Parked&)>& which, const absl::Status& status);
  void PollParked(const StepContext& context, Effects& effects, std::vector<Answer>& answers);

  const TaskQueueOptions options_;
  TaskStore& store_;
  const Clock& clock_;
  QueueMetrics& metrics_;
  StoreIdentity identity_;
  Subscriptions subscriptions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's alone, once it runs.
  OnBatch on_batch_;
  std::unique_ptr<Sequencer> sequencer_;
  LeaseAssembler assembler_;
  std::list<Parked> parked_;
  DiskState disk_ = DiskState::kOk;
  absl::Duration last_look_;
  absl::Duration next_housekeeping_;
  bool more_due_ = false;
  // To callers other than the one whose command is judged.
  std::vector<Answer> further_answers_;
  std::map<v1::ItemState, double> reported_items_;
  std::map<v1::JobState, double> reported_jobs_;

  std::thread thread_;
};

template <typename T>
void QueueShard::PostVerb(Done<T> done,
                          std::function<absl::StatusOr<T>(const StepContext&, Effects&)> verb) {
  Fail fail = [done](absl::Status status) { done(std::move(status)); };
  Post(
      [done = std::move(done), verb = std::move(verb)](const StepContext& context, Effects& effects)
          -> Reply { return [done, result = verb(context, effects)] { done(result); }; },
      std::move(fail));
}

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_QUEUE_SHARD_H_
