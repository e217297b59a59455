// The queue's rules: what each verb does to jobs, items and leases.
//
// Every verb is a step (state, request, context) -> (reply, effects). It reads no clock,
// draws no random number and does no I/O but reading the store that it is handed: the same
// requests in the same contexts give the same bytes. A verb that answers with an error has
// no effects. The caller makes the effects durable before it lets anybody see a reply, and
// then calls Committed; when the write fails, the state in memory is worthless and the
// process ends.
//
// Memory: jobs, and items that were granted and are not final. Items that were never
// granted are a number in their job; final ones are on disk alone.
//
// One sequencer owns one store. It does not assume that it is the only one in a process.
//
// Who wins:
//   Cancel against Complete: the one that comes first. A Complete after the Cancel is taken
//     as the end of the holder's work: the item is CANCELLED, and its result is stored as
//     not verified. Steps that a holder still records are kept.
//   Cancel against a grant: after a Cancel nothing of the job is granted.
//   Expiry against any verb of the holder: a lease that is past its deadline is over with
//     the next Tick; a verb that comes before that Tick renews it.
//
// Events: each change of a leased item, each step, each retried item and each change of the
// job's state has one. The READY and DELAYED items that a Cancel ends have none of their
// own: the job's CANCELLED event stands for them, and its RUNNING event for the CANCELLED
// ones that a Retry brings back.
#ifndef KMOSAIC_COORDINATOR_QUEUE_SEQUENCER_H_
#define KMOSAIC_COORDINATOR_QUEUE_SEQUENCER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/queue/fair_share.h"
#include "coordinator/queue/item_plan.h"
#include "coordinator/queue/queue_rules.h"
#include "coordinator/queue/records.h"
#include "coordinator/queue/step_context.h"
#include "coordinator/queue/submission.h"
#include "coordinator/store/store_identity.h"
#include "coordinator/store/task_store.h"
#include "kernelmosaic/v1/admin.pb.h"
#include "kernelmosaic/v1/runner.pb.h"

namespace kmosaic {

// A lease that was just given; whoever answers the runner adds task and steps from the
// store.
struct GrantedItem {
  v1::LeaseToken token;
  uint64_t job_number = 0;
  uint32_t item = 0;
  ItemPlace place;
  // Steps that earlier holders recorded.
  uint32_t steps = 0;
  std::shared_ptr<const v1::JobSpec> spec;
};

struct SyncResult {
  std::vector<GrantedItem> granted;
  std::vector<v1::HeldLease> held;
  // There is something that the runner should hear at once.
  bool urgent = false;
};

// Not thread-safe.
class Sequencer {
 public:
  // Rebuilds the state from `store`, which must outlive the sequencer and which it only
  // reads. Every lease on disk gets a full term from `now` on. DATA_LOSS when rows
  // contradict each other.
  static absl::StatusOr<std::unique_ptr<Sequencer>> Load(const QueueRules& rules,
                                                         const StoreIdentity& identity,
                                                         const TaskStore& store,
                                                         const StepContext& now);

  // Verbs on jobs; what they promise stands at TaskQueue and in job.proto.
  absl::StatusOr<v1::SubmitResponse> Submit(const Submission& submission,
                                            const StepContext& context, Effects& effects);
  // A large submission, so that no batch has to hold all of it. Stage gives the job's
  // number, or the answer when nothing is to be made (an error, or the job that exists).
  // Then StageTasks, a piece with each batch, from task 0 on: it returns the first task
  // that is left. Then FinishSubmit, which may still refuse; it cleans up then, as the next
  // start does for a submission that was never finished.
  struct Staged {
    uint64_t number = 0;
    std::optional<v1::SubmitResponse> existed;
  };
  absl::StatusOr<Staged> Stage(const Submission& submission, const StepContext& context,
                               Effects& effects);
  size_t StageTasks(uint64_t number, const Submission& submission, size_t first, Effects& effects);
  absl::StatusOr<v1::SubmitResponse> FinishSubmit(uint64_t number, const Submission& submission,
                                                  const StepContext& context, Effects& effects);
  absl::StatusOr<v1::ExtendJobResponse> Extend(const Extension& extension,
                                               const StepContext& context, Effects& effects);
  absl::StatusOr<v1::Job> Get(const std::string& id) const;
  // Up to `limit` jobs whose numbers are below `before`, newest first.
  std::vector<std::pair<uint64_t, v1::Job>> ListBefore(uint64_t before, size_t limit) const;
  // Ids and request ids of all jobs.
  std::vector<std::pair<std::string, std::string>> JobIds() const;
  absl::StatusOr<v1::Job> Cancel(const std::string& id, const StepContext& context,
                                 Effects& effects);
  absl::StatusOr<v1::Job> Pause(const std::string& id, const StepContext& context,
                                Effects& effects);
  absl::StatusOr<v1::Job> Resume(const std::string& id, const StepContext& context,
                                 Effects& effects);
  absl::StatusOr<v1::RetryJobResponse> Retry(const v1::RetryJobRequest& request,
                                             const StepContext& context, Effects& effects);
  // These also on a full disk: they make room.
  absl::StatusOr<v1::PurgeDeadLettersResponse> Purge(const v1::PurgeDeadLettersRequest& request,
                                                     const StepContext& context, Effects& effects);
  absl::StatusOr<v1::Job> Delete(const std::string& id, Effects& effects);

  // The runner spoke: its leases are renewed, then it is given what Poll gives.
  // Never more than `most` leases, nor than it has places free.
  absl::StatusOr<SyncResult> Sync(const v1::RunnerSyncRequest& request, const StepContext& context,
                                  Effects& effects, uint32_t most = kAnyGrants);
  // Orders and grants alone, for a Sync that waited: renews nothing.
  absl::StatusOr<SyncResult> Poll(const v1::RunnerSyncRequest& request, const StepContext& context,
                                  Effects& effects, uint32_t most = kAnyGrants);
  static constexpr uint32_t kAnyGrants = std::numeric_limits<uint32_t>::max();
  absl::Status RecordStep(const v1::RecordStepRequest& request, const StepContext& context,
                          Effects& effects);
  absl::Status Complete(const v1::CompleteRequest& request, const StepContext& context,
                        Effects& effects);
  absl::Status Release(const v1::ReleaseRequest& request, const StepContext& context,
                       Effects& effects);
  // CANCELLED for a lease of a cancelled job.
  absl::Status CheckLease(const v1::LeaseToken& token, std::string* runner,
                          std::shared_ptr<const v1::JobSpec>* spec, Effects& effects) const;

  // Ends leases and delays that are due, at most `limit` of them. True when more are due.
  bool Tick(const StepContext& context, Effects& effects, size_t limit);
  // Steady time of the next thing that Tick will have to do; infinite when there is none.
  absl::Duration NextDue() const;

  // Gives each lease a full term: the coordinator itself stood still, not its runners.
  void RenewAll(const StepContext& context);

  // Something could be granted now.
  bool HasWork() const { return fair_.Pick().has_value(); }
  FairShare::Top Work() const { return fair_.HighestBand(); }

  // Last, after the verbs of a batch: adds rows of the jobs that they changed.
  void Finish(Effects& effects);
  // The batch is durable: what it made final leaves memory.
  void Committed();

  std::vector<v1::Runner> Runners() const;
  // Sums over all jobs, and jobs by state.
  v1::JobCounts TotalCounts() const;
  std::map<v1::JobState, uint64_t> JobsByState() const;

 private:
  struct RunnerRecord {
    v1::Runner shown;
    absl::Duration heard;
  };
  // What a runner holds, while it holds something.
  struct Holdings {
    uint32_t leases = 0;
    // How many there were when the first of them ran out; 0 since it was last heard of.
    uint32_t at_death = 0;
  };
  // Steady time, job, item.
  using Due = std::tuple<absl::Duration, uint64_t, uint32_t>;

  Sequencer(const QueueRules& rules, const StoreIdentity& identity, const TaskStore& store);

  // sequencer.cc: state shared by all verbs.
  absl::Status LoadJob(uint64_t number, std::string_view row, const StoreSnapshot& snapshot,
                       const StepContext& now);
  absl::Status LoadItems(JobRecord& job, const StoreSnapshot& snapshot, const StepContext& now);
  absl::Status LoadStaging(const StoreSnapshot& snapshot);
  absl::StatusOr<JobRecord*> FindJob(const std::string& id);
  absl::StatusOr<const JobRecord*> FindJob(const std::string& id) const;
  void SaveItem(const JobRecord& job, uint32_t number, Effects& effects);
  // What a Move is told to people with; none for the bulk of a Cancel or Retry.
  struct Why {
    std::string reason;
    v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;
    bool event = true;
  };
  // Changes state, counters, indexes and row of an item. Before: `lease` is set exactly for
  // a move to LEASED, not_before and due for one to DELAYED. Aborts when the move does not
  // exist.
  void Move(JobRecord& job, uint32_t number, v1::ItemState to, const Why& why,
            const StepContext& context, Effects& effects);
  void AppendEvent(JobRecord& job, v1::JobEvent& event, const StepContext& context,
                   Effects& effects);
  void AppendItemEvent(JobRecord& job, uint32_t number, v1::ItemState from, const Why& why,
                       const StepContext& context, Effects& effects);
  void AppendJobEvent(JobRecord& job, const StepContext& context, Effects& effects);
  // Marks the job finished when its last open item ended.
  void FinishJobIfOver(JobRecord& job, const StepContext& context, Effects& effects);
  void RefreshShare(const JobRecord& job);
  absl::Status CheckDisk(const StepContext& context) const;

  // sequencer_submit.cc
  // The answer of a Submit that makes nothing: an error or the job that exists.
  absl::StatusOr<std::optional<v1::SubmitResponse>> CheckSubmit(const Submission& submission,
                                                                const StepContext& context) const;
  v1::SubmitResponse MakeJob(uint64_t number, const Submission& submission,
                             const StepContext& context, Effects& effects);
  absl::Status CheckRoom(uint64_t items, const StepContext& context) const;
  void DropStaging(uint64_t number, Effects& effects);
  absl::Status LoadTaskIds(JobRecord& job) const;
  absl::StatusOr<std::optional<v1::ExtendJobResponse>> FindExtension(
      const JobRecord& job, const Extension& extension) const;

  // sequencer_jobs.cc
  // Takes back a Cancel, for leases and for the items that nobody had touched.
  void Revive(JobRecord& job, uint64_t untouched);
  void RetryItem(JobRecord& job, uint32_t number, const Why& why, const StepContext& context,
                 Effects& effects);
  // Numbers of the items in one of `wanted` (final states), in order. Those that are not in
  // memory are put there, to be moved.
  absl::StatusOr<std::vector<uint32_t>> TakeFinal(JobRecord& job,
                                                  const std::set<v1::ItemState>& wanted,
                                                  const std::set<uint32_t>& only);

  // sequencer_leases.cc
  struct Held {
    JobRecord* job = nullptr;
    uint32_t number = 0;
    ItemRecord* item = nullptr;
  };
  // The item that `token` currently leases; FAILED_PRECONDITION otherwise.
  absl::StatusOr<Held> FindHeld(const v1::LeaseToken& token, const char* verb,
                                Effects& effects) const;
  // The item whose newest attempt `token` names, while it is in memory; otherwise null.
  Held FindNewest(const v1::LeaseToken& token) const;
  // The token names this attempt, and this store gave it out.
  bool IsOf(const v1::LeaseToken& token, uint64_t epoch, uint32_t attempt) const;
  // How the attempt that `token` names ended, when it is its item's newest; from disk when
  // the item is final.
  absl::StatusOr<v1::AttemptEnd> EndOf(const v1::LeaseToken& token) const;
  // Upper bound of what the job's next grant adds to a reply.
  size_t GrantBytes(const JobRecord& job) const;
  void Renew(const Held& held, const StepContext& context);
  void SetDeadline(const JobRecord& job, uint32_t number, absl::Duration deadline);
  GrantedItem GrantNext(JobRecord& job, const std::string& runner, const StepContext& context,
                        Effects& effects);
  // Ends the lease: attempt row, holder, indexes. The caller moves the item on.
  void EndLease(const Held& held, v1::AttemptEnd how, const std::string& outcome,
                v1::FailureClass failure, const StepContext& context, Effects& effects);
  // Moves an item whose lease has ended to `to`, or to CANCELLED with its job.
  void Settle(const Held& held, v1::ItemState to, const Why& why, const StepContext& context,
              Effects& effects);
  absl::Status CheckStep(const v1::Step& step) const;
  // What the death of this holder says about each of its items, in millionths.
  uint32_t BlameOf(const std::string& runner);
  void Expire(JobRecord& job, uint32_t number, const StepContext& context, Effects& effects);
  absl::StatusOr<std::string> StepDigest(const Held& held, uint32_t step) const;

  const QueueRules rules_;
  const StoreIdentity identity_;
  // Holds what was durable at the end of the last batch. Read for what is not in memory:
  // final items, tasks, extensions, digests of old steps.
  const TaskStore& store_;

  std::map<uint64_t, std::unique_ptr<JobRecord>> jobs_;
  std::unordered_map<std::string, JobRecord*> jobs_by_id_;
  std::unordered_map<std::string, JobRecord*> jobs_by_request_;
  // Items that became final in this batch.
  std::vector<std::pair<uint64_t, uint32_t>> settled_;
  // Jobs whose task_ids are kept for this batch alone.
  std::vector<uint64_t> fresh_jobs_;
  // Extensions of this batch.
  std::map<std::pair<uint64_t, std::string>, v1::StoredExtension> pending_extensions_;
  // Submissions that an earlier process left unfinished; the first Tick drops their rows.
  std::vector<uint64_t> abandoned_;
  uint64_t next_job_ = 1;
  uint64_t open_items_ = 0;

  // Filled in again and again, so that their memory is; every field is set each time.
  v1::JobEvent item_event_;
  v1::StoredItem stored_item_;

  FairShare fair_;
  std::set<Due> deadlines_;
  std::set<Due> delays_;
  std::map<std::string, RunnerRecord> runners_;
  std::map<std::string, Holdings> holdings_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_SEQUENCER_H_
