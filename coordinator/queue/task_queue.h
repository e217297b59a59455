// The queue as the coordinator's services see it: many callers, and one or several shards,
// each with a store and a thread of its own (queue_shard.h).
//
// Verbs are handed over and answered through a callback. A shard's thread takes what has
// gathered, lets the Sequencer judge it, writes everything in one synced batch, and only
// then calls back: what was acknowledged is on disk.
//
// A job is on one shard as a whole, by a hash of its request id. Jobs stay where they are when
// the number of shards changes.
#ifndef KMOSAIC_COORDINATOR_QUEUE_TASK_QUEUE_H_
#define KMOSAIC_COORDINATOR_QUEUE_TASK_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/enum_names.h"
#include "coordinator/queue/queue_rules.h"
#include "coordinator/queue/submission.h"
#include "coordinator/store/disk_space.h"
#include "coordinator/store/store_identity.h"
#include "coordinator/store/task_store.h"
#include "kernelmosaic/v1/admin.pb.h"
#include "kernelmosaic/v1/runner.pb.h"

namespace kmosaic {

struct QueueMetrics;

struct TaskQueueOptions {
  QueueRules rules;
  DiskMarks disk;
  // Bytes free for the store, asked about once a second; empty: never short of room.
  std::function<absl::StatusOr<uint64_t>()> free_bytes;
  // Most commands in one batch.
  size_t max_batch = 512;
  // A submission with more bytes of tasks than this is written in pieces.
  size_t stage_bytes = 1u << 20;
  // Called once, from the queue's thread, when a write failed: nothing more will be
  // acknowledged, and the process should end with a code other than 0.
  std::function<void(const absl::Status&)> on_fatal;
};

// What a session remembers between its messages.
struct QueueSession {
  // For each shard its jobs whose specs the runner has; touched by the shard's thread alone.
  std::vector<std::shared_ptr<std::set<std::string>>> known_jobs;
};

// Who holds a lease, and for which job.
struct LeaseOwner {
  std::string runner;
  std::shared_ptr<const v1::JobSpec> spec;
};

// Thread-safe. Callbacks run on a shard's thread, once each, and must not block it; they
// may call back into the queue. After a fatal error and at destruction every open call is
// answered with UNAVAILABLE, which leaves open whether it took effect.
class TaskQueue {
 public:
  template <typename T>
  using Done = std::function<void(absl::StatusOr<T>)>;
  using DoneStatus = std::function<void(absl::Status)>;

  // Begins a new epoch on each store and rebuilds the state from it. Stores (at least one),
  // `clock` and `metrics` must outlive the queue. New jobs go to the first `shards` of them;
  // what the others have is finished there.
  static absl::StatusOr<std::unique_ptr<TaskQueue>> Start(const TaskQueueOptions& options,
                                                          const std::vector<TaskStore*>& stores,
                                                          size_t shards, const Clock& clock,
                                                          QueueMetrics& metrics);
  // With one shard.
  static absl::StatusOr<std::unique_ptr<TaskQueue>> Start(const TaskQueueOptions& options,
                                                          TaskStore& store, const Clock& clock,
                                                          QueueMetrics& metrics);
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Of the first store.
  const StoreIdentity& identity() const;
  // The store that has this job, for JobReader and ReadEvents; any one for an unknown job.
  const TaskStore& StoreOf(const std::string& job) const;
  // All of them, in the order of Start.
  std::vector<const TaskStore*> stores() const;

  // ALREADY_EXISTS: the request id was used for other content. RESOURCE_EXHAUSTED: too
  // much work or too little disk.
  void Submit(Submission submission, Done<v1::SubmitResponse> done);
  // More tasks for a job. FAILED_PRECONDITION when it is cancelled, INVALID_ARGUMENT when a
  // task does not fit the job, and as for Submit.
  void Extend(Extension extension, Done<v1::ExtendJobResponse> done);
  // The rest of these: NOT_FOUND when there is no such job.
  void GetJob(const std::string& id, Done<v1::Job> done);
  // Newest first. INVALID_ARGUMENT for a page token that is not one.
  void ListJobs(const v1::ListJobsRequest& request, Done<v1::ListJobsResponse> done);
  // A finished job stays as it is. Who comes first wins: a Complete that is sequenced before
  // the Cancel stands; after it, whatever the holder sends ends in CANCELLED.
  void Cancel(const std::string& id, Done<v1::Job> done);
  // FAILED_PRECONDITION for a cancelled or finished job.
  void Pause(const std::string& id, Done<v1::Job> done);
  void Resume(const std::string& id, Done<v1::Job> done);
  void Retry(const v1::RetryJobRequest& request, Done<v1::RetryJobResponse> done);
  void Purge(const v1::PurgeDeadLettersRequest& request, Done<v1::PurgeDeadLettersResponse> done);
  void Delete(const std::string& id, Done<v1::Job> done);

  // May be held back as long as the request's `wait`. A later Sync of the same runner
  // ends an earlier one that still waits. Returns a ticket for CancelSync.
  uint64_t Sync(v1::RunnerSyncRequest request, Done<v1::RunnerSyncResponse> done);
  // The caller is gone: a Sync that waits is answered with CANCELLED and gets no leases.
  void CancelSync(uint64_t ticket);
  std::shared_ptr<QueueSession> NewSession() const;
  // The calls of one message of a session, which take effect together (those of one shard).
  // `done` is called once or, when the Sync has to wait and there are other calls, twice; the
  // flag says that it is the last time. UNAVAILABLE ends the session.
  using DoneExchange = std::function<void(absl::StatusOr<v1::SessionResponse>, bool last)>;
  void Exchange(v1::SessionRequest request, std::shared_ptr<QueueSession> session,
                DoneExchange done);
  // The session is over: its Syncs that wait are answered with CANCELLED and get no leases.
  void EndSession(std::shared_ptr<QueueSession> session);
  // FAILED_PRECONDITION for a token that is not the item's current one, on each of these.
  void RecordStep(v1::RecordStepRequest request, DoneStatus done);
  void Complete(v1::CompleteRequest request, DoneStatus done);
  void Release(v1::ReleaseRequest request, DoneStatus done);
  // For placement: who may ask for a slot.
  void CheckLease(const v1::LeaseToken& token, Done<LeaseOwner> done);

  // Keeps an order to drain this incarnation of a worker, or (empty) takes it back.
  void KeepDrainOrder(const std::string& worker, const std::string& incarnation, DoneStatus done);

  // Runners heard of lately.
  void ListRunners(Done<std::vector<v1::Runner>> done);

  // Calls `on_event` (from a shard's thread) after each batch that appended events to
  // the job, or deleted it, until the subscription is destroyed. Subscribe first, then
  // read: nothing is missed.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  std::unique_ptr<Subscription> Subscribe(const std::string& job, std::function<void()> on_event);

  // Looks at the clock again. Only needed where the clock is moved by hand.
  void Wake();

 private:
  struct Impl;
  explicit TaskQueue(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_TASK_QUEUE_H_
