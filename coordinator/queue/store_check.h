// What must hold of every store at every moment.
#ifndef KMOSAIC_COORDINATOR_QUEUE_STORE_CHECK_H_
#define KMOSAIC_COORDINATOR_QUEUE_STORE_CHECK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

struct StoreSummary {
  uint64_t jobs = 0;
  uint64_t tasks = 0;
  uint64_t items = 0;
  // Granted at least once and not final.
  uint64_t live = 0;
  uint64_t steps = 0;
  uint64_t events = 0;
  uint64_t dead_letters = 0;
};

// Reads every row of a store of the present schema. DATA_LOSS names the first contradiction:
// a row that cannot be read, counters that are not those of the rows, gaps in events, steps
// or tasks, a result without its item, an index that is not what the items say, rows of a
// job that is gone.
absl::StatusOr<StoreSummary> CheckStore(const TaskStore& store);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_STORE_CHECK_H_
