// What a verb of the sequencer is given besides its request, and what it brings about.
#ifndef KMOSAIC_COORDINATOR_QUEUE_STEP_CONTEXT_H_
#define KMOSAIC_COORDINATOR_QUEUE_STEP_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/enum_names.h"
#include "coordinator/store/disk_space.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

// The same for every verb of a batch.
struct StepContext {
  absl::Duration steady;
  absl::Time wall;
  DiskState disk = DiskState::kOk;
  // 64 fresh bits each time.
  std::function<uint64_t()> random;
};

// Gathered over the verbs of a batch. Nothing of it is true before `batch` is durable.
struct Effects {
  WriteBatch batch;
  // Jobs whose state row still has to be added to the batch (Sequencer::Finish).
  std::set<uint64_t> dirty;
  // Ids of jobs with new events, or that were deleted.
  std::set<std::string> changed;
  // Runners that were given an order while their Sync may be waiting.
  std::set<std::string> ordered;

  // For metrics.
  std::vector<std::pair<v1::ItemState, v1::ItemState>> moves;
  std::vector<const char*> stale_verbs;
  uint64_t expired_leases = 0;
  uint64_t steps = 0;
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_STEP_CONTEXT_H_
