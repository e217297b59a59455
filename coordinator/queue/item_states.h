// Which moves of an item exist.
#ifndef KMOSAIC_COORDINATOR_QUEUE_ITEM_STATES_H_
#define KMOSAIC_COORDINATOR_QUEUE_ITEM_STATES_H_

#include <cstdint>

#include "common/base/enum_names.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {

// Everything else is a broken invariant.
//
//   READY    -> LEASED     granted
//            -> CANCELLED  its job was cancelled
//   DELAYED  -> READY      not_before has come
//            -> CANCELLED  its job was cancelled
//   LEASED   -> DONE       completed
//            -> READY      handed back, or the holder died
//            -> DELAYED    released with a failure that may pass
//            -> FAILED     final failure, or attempts used up
//            -> DEAD       too many holders died, or too many workers failed
//            -> CANCELLED  its job was cancelled, and now the lease is over
//   FAILED, DEAD, CANCELLED -> READY   retried by a person
//   FAILED, DEAD -> CANCELLED          given up by a person
bool MayMove(v1::ItemState from, v1::ItemState to);

// DONE, FAILED, CANCELLED, DEAD.
bool IsFinal(v1::ItemState state);

// FAILED, DEAD: ended without a result, and listed as dead letters.
bool IsDeadLetter(v1::ItemState state);

// The counter of `state`.
uint64_t CountOf(const v1::JobCounts& counts, v1::ItemState state);
// Adds `by` to it.
void AddToCount(v1::JobCounts& counts, v1::ItemState state, int64_t by);

// What people see as the job's state.
v1::JobState JobStateOf(const v1::StoredJobState& state);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_ITEM_STATES_H_
