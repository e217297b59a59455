// Backups of a data directory, and coming back from one.
//
//   BACKUP/store/   a checkpoint of the store
//   BACKUP/blobs/   the blobs
//   BACKUP/BACKUP   written last: without it the backup was not finished
#ifndef KMOSAIC_COORDINATOR_STORE_BACKUP_H_
#define KMOSAIC_COORDINATOR_STORE_BACKUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/rocksdb_task_store.h"

namespace kmosaic {

// Where a data directory has its parts.
std::string StoreDirectory(const std::string& data_dir);
std::string BlobDirectory(const std::string& data_dir);

struct BackupSize {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// Backs up the open `store` of `data_dir` and its blobs to `directory`, an absolute path
// where nothing may be (ALREADY_EXISTS). The store is taken first: blobs are never changed,
// so every blob that it names is there. Blocks; writes to the store go on.
absl::StatusOr<BackupSize> MakeBackup(const RocksDbTaskStore& store, const std::string& data_dir,
                                      const std::string& directory);

// Makes `data_dir` (which must not exist, or be empty) from a finished backup: copies, gives
// the store `fresh_incarnation`, so that leases which the original gave out later are
// refused, and renames it into place when everything is synced. The backup is not changed.
absl::StatusOr<BackupSize> RestoreBackup(const std::string& directory, const std::string& data_dir,
                                         const std::string& fresh_incarnation);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_BACKUP_H_
