// What makes one store, and one start on it, distinguishable from every other.
#ifndef KMOSAIC_COORDINATOR_STORE_STORE_IDENTITY_H_
#define KMOSAIC_COORDINATOR_STORE_STORE_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

// Layout of keys and messages that this program writes.
inline constexpr uint32_t kSchemaVersion = 2;

struct StoreIdentity {
  // Random, made with the store.
  std::string incarnation;
  // Grows by one with each StartOn: no two starts share it.
  uint64_t epoch = 0;
  uint32_t schema_version = kSchemaVersion;
};

// Reads the store's identity and durably begins the next epoch; an empty store is
// initialised, one of an earlier schema is migrated first (store/migrations.h).
// `fresh_incarnation` is used for an empty store only. FAILED_PRECONDITION when a newer
// program wrote the store; DATA_LOSS when its meta entries or rows cannot be read.
//
// What was written by one start is not read as written by another: leases of a restored
// backup would otherwise carry tokens that were already given out. So a restore calls
// Reincarnate on the copy before anybody starts on it.
absl::StatusOr<StoreIdentity> StartOn(TaskStore& store, const std::string& fresh_incarnation);

// Gives the store another incarnation: tokens of the old one are refused.
absl::Status Reincarnate(TaskStore& store, const std::string& fresh_incarnation);

// The schema of a store; NOT_FOUND when it is empty.
absl::StatusOr<uint64_t> ReadSchema(const TaskStore& store);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_STORE_IDENTITY_H_
