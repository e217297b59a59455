// Turns granted items into leases with everything that a runner needs.
#ifndef KMOSAIC_COORDINATOR_QUEUE_LEASE_ASSEMBLER_H_
#define KMOSAIC_COORDINATOR_QUEUE_LEASE_ASSEMBLER_H_

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/queue/sequencer.h"
#include "coordinator/store/task_store.h"
#include "kernelmosaic/v1/runner.pb.h"

namespace kmosaic {

// One thread at a time; `store` must outlive it.
class LeaseAssembler {
 public:
  explicit LeaseAssembler(const TaskStore& store) : store_(store) {}

  // `result` has to be durable already. Specs of `known_jobs` are left out, and those that
  // are not are added to it; null: nothing is known. Leaves ttl and next_sync unset.
  // DATA_LOSS when the store lacks a task or step.
  absl::StatusOr<v1::RunnerSyncResponse> Answer(const SyncResult& result,
                                                std::set<std::string>* known_jobs);

 private:
  absl::Status AddTask(const GrantedItem& granted, v1::Lease& lease);
  absl::Status AddSteps(const StoreSnapshot& snapshot, const GrantedItem& granted,
                        v1::Lease& lease) const;

  const TaskStore& store_;
  // The task that was granted last, by job and number.
  std::optional<std::pair<std::pair<uint64_t, uint32_t>, v1::TaskSpec>> last_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_LEASE_ASSEMBLER_H_
