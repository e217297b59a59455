// From the layout of an earlier program to the present one (kSchemaVersion).
//
//   1 -> 2  Each task holds its TaskSpec instead of a digest into the family task_spec.
//           Items that are not final move to the family live, FAILED and DEAD ones are
//           listed in dead_letter; counts of tasks and touched items move to the job's
//           state; items know the bytes of their steps.
#ifndef KMOSAIC_COORDINATOR_STORE_MIGRATIONS_H_
#define KMOSAIC_COORDINATOR_STORE_MIGRATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

// Brings a store of schema `from` (at least 1, below kSchemaVersion) to the present one.
// Writes in batches of some MiB; the schema changes with the last one, and a migration that
// was cut off is done again from its beginning. DATA_LOSS when a row cannot be read.
absl::Status Migrate(TaskStore& store, uint64_t from);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_MIGRATIONS_H_
