// Backups of a data directory, and coming back from one.
//
//   BACKUP/store/   a checkpoint of the store (and store-1/, store-2/ ... of further shards)
//   BACKUP/blobs/   the blobs
//   BACKUP/BACKUP   written last: without it the backup was not finished
#ifndef KMOSAIC_COORDINATOR_STORE_BACKUP_H_
#define KMOSAIC_COORDINATOR_STORE_BACKUP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/rocksdb_task_store.h"

namespace kmosaic {

// Where a data directory has its parts.
std::string StoreDirectory(const std::string& data_dir, size_t shard = 0);
// How many stores are there.
size_t CountStores(const std::string& data_dir);
std::string BlobDirectory(const std::string& data_dir);

struct BackupSize {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// Backs up the open stores of `data_dir` (all, in order of their shards) and its blobs to
// `directory`, an absolute path where nothing may be (ALREADY_EXISTS). Stores are taken first:
// blobs are never changed, so every blob that they name is there. Blocks; writes go on. Of
// several stores each is taken at a moment of its own, which is fine: a job is in one.
absl::StatusOr<BackupSize> MakeBackup(const std::vector<const RocksDbTaskStore*>& stores,
                                      const std::string& data_dir, const std::string& directory);

// Makes `data_dir` (which must not exist, or be empty) from a finished backup: copies, gives
// the store `fresh_incarnation`, so that leases which the original gave out later are
// refused, and renames it into place when everything is synced. The backup is not changed.
absl::StatusOr<BackupSize> RestoreBackup(const std::string& directory, const std::string& data_dir,
                                         const std::string& fresh_incarnation);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_BACKUP_H_
