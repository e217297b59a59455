// Who may use which worker now: the thread-safe shell over PlacementTable.
//
// One placement serves runners (RunnerService.AcquireSlot), score streams and the worker
// registry, so that fairness and backpressure are decided in one place.
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_PLACEMENT_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_PLACEMENT_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/placement/placement_table.h"
#include "coordinator/placement/slot_request.h"
#include "kernelmosaic/v1/admin.pb.h"
#include "kernelmosaic/v1/runner.pb.h"
#include "kernelmosaic/v1/worker.pb.h"

namespace kmosaic {

// Thread-safe. Callbacks run without any lock held, on the thread whose call settled them
// or on the timer thread, so they must not block; they may call back into Placement.
class Placement {
 public:
  // The answer to one Acquire: a slot with a signed grant, or
  //   FAILED_PRECONDITION  no registered worker could ever serve it (says what is missing)
  //   UNAVAILABLE          no such worker has registered yet; worth another try
  //   DEADLINE_EXCEEDED    all fitting workers stayed busy for the whole wait
  //   CANCELLED            Cancel was called, or the placement is shutting down
  using Done = std::function<void(absl::StatusOr<v1::Slot>)>;

  // How long a granted request had waited, for a metric. Must not call back.
  using OnGrant = std::function<void(v1::Role, absl::Duration)>;

  // `clock` must outlive the placement. Makes the key that grants are signed with.
  Placement(PlacementTable::Options options, const Clock& clock, OnGrant on_grant = nullptr);
  // Answers what still waits with CANCELLED.
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // Calls `done` exactly once, possibly before it returns. The result names the request
  // for Cancel.
  uint64_t Acquire(SlotRequest request, Done done);

  // Withdraws a request that waits: its `done` is called with CANCELLED. False when it was
  // answered already (then a granted slot is the caller's to release) or is unknown.
  bool Cancel(uint64_t ticket);

  // Gives a slot back; an unknown or reclaimed one is ignored (releases may be repeated).
  void Release(const std::string& slot);

  // Frees all slots of a holder that is gone.
  void ReleaseHolder(const std::string& holder);

  // OK when a registered worker could serve it, busy or not; otherwise as Acquire.
  absl::Status CheckSatisfiable(const SlotRequirement& requirement) const;

  // A worker's state, and what it shall do. It gets work from the second call on: with the
  // reply to the first it learns the key of grants.
  v1::WorkerSyncResponse Sync(const v1::WorkerSyncRequest& request);

  // Drains a worker (or takes it back). NOT_FOUND for an unknown one.
  absl::StatusOr<v1::Worker> Drain(const std::string& worker, bool drain);

  // What the worker calls its present process; empty for an unknown one.
  std::string Incarnation(const std::string& worker) const;

  // A call to the worker did not get through: it gets no work until it syncs again.
  void Suspect(const std::string& worker);

  // Registered workers and those lost lately, by id.
  std::vector<v1::Worker> Workers() const;

  // For metrics: slots, waiting requests and wanted workers of each role.
  PlacementFigures Figures() const;

  // Does what is due by now. The timer thread calls it; tests with a FakeClock do too.
  void RunDue();

 private:
  struct Waiting {
    Done done;
    v1::Role role = v1::ROLE_UNSPECIFIED;
  };
  struct Answer {
    Done done;
    absl::StatusOr<v1::Slot> slot;
  };

  std::vector<Answer> TakeAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Slot ToSlot(const PlacementTable::Granted& granted, v1::Role role) const;
  void RunTimer();

  const Clock& clock_;
  const std::string key_;
  const OnGrant on_grant_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  PlacementTable table_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Last: it uses the rest.
  std::thread timer_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_PLACEMENT_H_
