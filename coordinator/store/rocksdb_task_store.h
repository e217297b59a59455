// The store on a local disk (RocksDB; this pair of files alone includes its headers).
#ifndef KMOSAIC_COORDINATOR_STORE_ROCKSDB_TASK_STORE_H_
#define KMOSAIC_COORDINATOR_STORE_ROCKSDB_TASK_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/task_store.h"

namespace rocksdb {
class FileSystem;
}

namespace kmosaic {

struct RocksDbOptions {
  // Write-ahead logs together; past it the oldest data is flushed, so that neither the
  // disk nor the time of a restart grows without end.
  uint64_t max_wal_bytes = 256ull << 20;
  uint64_t block_cache_bytes = 64ull << 20;
  // Memory for writes that are not in a table file yet, over all families.
  uint64_t write_buffer_bytes = 128ull << 20;
  // Where files live; the operating system's when null. Tests put faults here.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

class RocksDbTaskStore : public TaskStore {
 public:
  // Makes `directory` when it is not there. UNAVAILABLE when another process has the
  // store open (names it and the directory); FAILED_PRECONDITION when the directory
  // holds families that this program does not know.
  static absl::StatusOr<std::unique_ptr<RocksDbTaskStore>> Open(const std::string& directory,
                                                                const RocksDbOptions& options);
  // For looking only: writes nothing, takes no lock, and refuses Write. FAILED_PRECONDITION
  // when the store is of an earlier schema; NOT_FOUND when there is none.
  static absl::StatusOr<std::unique_ptr<RocksDbTaskStore>> OpenReadOnly(
      const std::string& directory);
  ~RocksDbTaskStore() override;

  // Makes `directory` (which must not exist, its parent must) a store of its own that holds
  // what is durable now. Table files are linked where the volume is the same, otherwise
  // copied; writes go on meanwhile. Any thread.
  absl::Status Checkpoint(const std::string& directory) const;
  // Reads every block. DATA_LOSS when one is damaged.
  absl::Status VerifyChecksums() const;

  absl::Status Write(const WriteBatch& batch) override;
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const override;
  std::unique_ptr<StoreSnapshot> Snapshot() const override;

 private:
  struct Impl;
  explicit RocksDbTaskStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_ROCKSDB_TASK_STORE_H_
