// Workers that an operator told to drain, so that the order outlives the coordinator.
#ifndef KMOSAIC_COORDINATOR_STORE_DRAIN_ORDERS_H_
#define KMOSAIC_COORDINATOR_STORE_DRAIN_ORDERS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

// Incarnation by worker: the order is for that process of the worker alone.
using DrainOrders = std::map<std::string, std::string>;

// Those of the last week; a worker takes no longer to drain. DATA_LOSS when one cannot be
// read.
absl::StatusOr<DrainOrders> ReadDrainOrders(const TaskStore& store, absl::Time now);

// Keeps an order, or takes it back (no incarnation), and drops those that are too old.
absl::Status PutDrainOrder(const TaskStore& store, const std::string& worker,
                           const std::string& incarnation, absl::Time now, WriteBatch& batch);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_DRAIN_ORDERS_H_
