// Workers, their slots and who waits for one: a pure state machine. Time comes in as an
// argument (steady, Clock::Steady), answers are collected with TakeOutcomes.
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_PLACEMENT_TABLE_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_PLACEMENT_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/placement/demand.h"
#include "coordinator/placement/slot_request.h"
#include "coordinator/placement/wait_queue.h"
#include "coordinator/placement/worker_record.h"
#include "kernelmosaic/v1/admin.pb.h"
#include "kernelmosaic/v1/worker.pb.h"

namespace kmosaic {

struct PlacementFigures {
  struct Role {
    uint64_t total = 0;    // slots of workers that are not lost
    uint64_t used = 0;     // of them granted
    uint64_t waiting = 0;  // requests
    uint64_t wanted = 0;   // workers, see demand.h
  };
  std::map<v1::Role, Role> roles;
  std::map<v1::WorkerState, uint64_t> workers;
  // Since the start.
  uint64_t workers_lost = 0;
  uint64_t slots_reclaimed = 0;
  uint64_t unsatisfiable = 0;
};

// Not thread-safe.
class PlacementTable {
 public:
  struct Options {
    // Workers are told to sync within this time.
    absl::Duration sync_interval = absl::Seconds(5);
    // A worker silent for this long is lost and its slots are free.
    absl::Duration lost_after = absl::Seconds(15);
    // How long after the start, and after the loss of a worker that fitted, a requirement
    // that nobody meets waits instead of failing.
    absl::Duration grace = absl::Seconds(30);
    // How long a lost worker stays in the list.
    absl::Duration forget_after = absl::Minutes(10);
    // A slot that is not given back within this time is taken back.
    absl::Duration compile_ttl = absl::Minutes(10);
    absl::Duration verify_ttl = absl::Minutes(20);
    absl::Duration benchmark_ttl = absl::Minutes(20);
    // Start of every slot id; another one for each start of the process, so that a late
    // release of an earlier process's slot frees nothing.
    std::string slot_prefix = "slot";
    // Orders to drain of an earlier process: incarnation by worker.
    std::map<std::string, std::string> drained;
  };

  struct Granted {
    std::string slot;
    std::string worker;
    std::string endpoint;
    absl::Duration ttl;
    absl::Duration waited;
  };

  struct Outcome {
    uint64_t ticket = 0;
    absl::StatusOr<Granted> result;
  };

  PlacementTable(Options options, absl::Duration now);

  struct Orders {
    bool drain = false;
    // Drained, and nothing of it is in use.
    bool end = false;
    // It gets no work before its next sync, since it learns the key of grants with this one.
    bool sync_soon = false;
  };

  // A worker's state. A new incarnation frees the slots of the earlier one and ends an order
  // to drain.
  Orders Sync(const v1::WorkerSyncRequest& request, absl::Time wall, absl::Duration now);

  // Incarnation of a worker; empty for an unknown one.
  std::string Incarnation(const std::string& worker) const;

  // False for an unknown worker.
  bool Drain(const std::string& worker, bool drain, absl::Duration now);

  // A call to the worker did not get through: no work for it until it syncs again (at once
  // when it lives, as a new incarnation when it restarted).
  void Suspect(const std::string& worker);

  // `ticket` is the caller's and unique. The outcome may be there at once.
  void Enqueue(uint64_t ticket, SlotRequest request, absl::Duration now);

  // The outcome CANCELLED follows when it still waited.
  bool Cancel(uint64_t ticket);

  // False for a slot that is not granted.
  bool Release(const std::string& slot, absl::Duration now);

  // Returns how many slots it freed.
  size_t ReleaseHolder(const std::string& holder, absl::Duration now);

  absl::Status CheckSatisfiable(const SlotRequirement& requirement, absl::Duration now) const;

  // Lost workers, expired waits and slots.
  void Tick(absl::Duration now);

  // Outcomes since the last call, in the order in which they came about.
  std::vector<Outcome> TakeOutcomes() { return std::exchange(outcomes_, {}); }

  std::vector<v1::Worker> Workers() const;
  std::optional<v1::Worker> FindWorker(const std::string& id) const;

  PlacementFigures Figures(absl::Duration now) const;

  const Options& options() const { return options_; }

 private:
  struct GrantedSlot {
    std::string worker;
    std::string holder;
    std::string group;
    v1::Role role = v1::ROLE_UNSPECIFIED;
    absl::Duration granted;
    absl::Duration expires;
  };

  absl::Duration Ttl(v1::Role role) const;
  // Grants while a request that waits and a slot that is free fit each other.
  void Match(absl::Duration now);
  // Nothing when the request has to wait.
  WorkerRecord* ChooseWorker(const WaitQueue::Request& request);
  void Grant(const WaitQueue::Request& request, WorkerRecord& worker, absl::Duration now);
  void FreeSlot(std::map<std::string, GrantedSlot>::iterator slot, absl::Duration now);
  size_t FreeSlotsWhere(const std::function<bool(const GrantedSlot&)>& which, absl::Duration now);
  void LoseSilentWorkers(absl::Duration now);
  void UpdateDemand();
  // Answers those whom no worker can serve any more.
  void FailUnsatisfiable(absl::Duration now);
  absl::Status Expired(const WaitQueue::Request& request) const;
  bool AnyMeets(const SlotRequirement& requirement) const;
  bool InGrace(const SlotRequirement& requirement, absl::Duration now) const;

  const Options options_;
  const absl::Duration started_;
  std::map<std::string, WorkerRecord> workers_;
  // Orders to drain, those of an earlier process too: incarnation by worker.
  std::map<std::string, std::string> drained_;
  std::map<std::string, GrantedSlot> slots_;
  WaitQueue queue_;
  Demand demand_;
  std::vector<Outcome> outcomes_;
  uint64_t next_slot_ = 1;
  uint64_t grants_ = 0;
  uint64_t workers_lost_ = 0;
  uint64_t slots_reclaimed_ = 0;
  uint64_t unsatisfiable_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_PLACEMENT_TABLE_H_
