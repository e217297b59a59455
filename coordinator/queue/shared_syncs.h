// Messages of runners that concern several shards: divides them, lets each shard judge its
// part, and puts the answers together.
//
// Who grants how many of the free places of a Sync: shards share as jobs do (FairShare), each
// with the band and the weight of the jobs that it could serve, so that jobs share by weight
// wherever they are. A job's own cap is kept by its shard. Ageing is counted in a shard and
// between shards; a job is passed over at most so many times more often than in one shard.
//
// The parts of a message take effect together within each shard, not over all of them.
#ifndef KMOSAIC_COORDINATOR_QUEUE_SHARED_SYNCS_H_
#define KMOSAIC_COORDINATOR_QUEUE_SHARED_SYNCS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "coordinator/queue/fair_share.h"
#include "coordinator/queue/queue_shard.h"
#include "coordinator/queue/task_queue.h"

namespace kmosaic {

// Thread-safe. Its callbacks run on the threads of shards.
class SharedSyncs {
 public:
  // The shard that has this job.
  using Route = std::function<size_t(const std::string& job)>;

  // All must outlive it; shards are begun later.
  SharedSyncs(const QueueRules& rules, const Clock& clock, std::vector<QueueShard*> shards,
              Route route);

  // As TaskQueue::Exchange. `ticket` is for EndSync, `session` may be null.
  void Exchange(v1::SessionRequest request, uint64_t ticket, std::shared_ptr<QueueSession> session,
                TaskQueue::DoneExchange done);
  // The caller is gone.
  void EndSync(uint64_t ticket);
  void EndSession(const std::shared_ptr<QueueSession>& session);

  // What a shard says after each of its batches (QueueShard::OnBatch).
  void OnBatch(size_t shard, const FairShare::Top& work, const std::set<std::string>& ordered);

  // From now on nothing is held back; all that is is answered with `status`.
  void Stop(const absl::Status& status);

 private:
  // One message on its way through the shards, or held back.
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  // Decides on free places and makes the part of each shard; empty ones are left out.
  void Divide(Round& round, bool renew) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(const RoundPtr& round);
  void Took(const RoundPtr& round, size_t shard, absl::StatusOr<QueueShard::Part> part);
  // All parts are there.
  void Finish(const RoundPtr& round);
  void TakeParts(Round& round);
  void HandBack(const Round& round, size_t shard, const v1::RunnerSyncResponse& sync);
  // There is nothing for its sync yet: holds it back, or sends it once more.
  void Hold(const RoundPtr& round);
  // With what is left to be said.
  static void AnswerSync(Round& round);
  std::vector<RoundPtr> TakeHeld(const std::function<bool(const Round&)>& which, size_t limit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void EndAll(const std::vector<RoundPtr>& rounds, const absl::Status& status);

  const QueueRules rules_;
  const Clock& clock_;
  const std::vector<QueueShard*> shards_;
  const Route route_;

  std::mutex mutex_;
  FairShare share_ ABSL_GUARDED_BY(mutex_);
  // Those that wait for work, oldest first, and those that are on their way.
  std::list<RoundPtr> held_ ABSL_GUARDED_BY(mutex_);
  std::set<RoundPtr> open_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_SHARED_SYNCS_H_
