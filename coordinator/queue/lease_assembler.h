// Turns granted items into leases with everything that a runner needs.
#ifndef KMOSAIC_COORDINATOR_QUEUE_LEASE_ASSEMBLER_H_
#define KMOSAIC_COORDINATOR_QUEUE_LEASE_ASSEMBLER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/queue/sequencer.h"
#include "coordinator/store/task_store.h"
#include "kernelmosaic/v1/runner.pb.h"

namespace kmosaic {

// One thread at a time; `store` must outlive it.
class LeaseAssembler {
 public:
  explicit LeaseAssembler(const TaskStore& store) : store_(store) {}

  // `result` has to be durable already. Leaves ttl and next_sync unset. DATA_LOSS when
  // the store lacks a task or step.
  absl::StatusOr<v1::RunnerSyncResponse> Answer(const SyncResult& result);

 private:
  absl::StatusOr<std::shared_ptr<const v1::TaskSpec>> Task(const std::string& digest);
  absl::Status AddSteps(const StoreSnapshot& snapshot, const GrantedItem& granted,
                        v1::Lease& lease) const;

  const TaskStore& store_;
  // Tasks are granted many times in a row (views x samples), so a few are kept.
  std::map<std::string, std::shared_ptr<const v1::TaskSpec>> recent_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_LEASE_ASSEMBLER_H_
