// What makes one store, and one start on it, distinguishable from every other.
#ifndef KMOSAIC_COORDINATOR_STORE_STORE_IDENTITY_H_
#define KMOSAIC_COORDINATOR_STORE_STORE_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

// Layout of keys and messages that this program writes.
inline constexpr uint32_t kSchemaVersion = 1;

struct StoreIdentity {
  // Random, made with the store.
  std::string incarnation;
  // Grows by one with each StartOn: no two starts share it.
  uint64_t epoch = 0;
  uint32_t schema_version = kSchemaVersion;
};

// Reads the store's identity and durably begins the next epoch; an empty store is
// initialised. `fresh_incarnation` is used for an empty store only.
// FAILED_PRECONDITION when a newer program wrote the store; DATA_LOSS when its meta
// entries cannot be read.
absl::StatusOr<StoreIdentity> StartOn(TaskStore& store, const std::string& fresh_incarnation);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_STORE_IDENTITY_H_
