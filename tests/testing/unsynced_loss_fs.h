// A RocksDB file system that can lose what was never synced, as a power cut does.
#ifndef KMOSAIC_TESTS_TESTING_UNSYNCED_LOSS_FS_H_
#define KMOSAIC_TESTS_TESTING_UNSYNCED_LOSS_FS_H_

#include <rocksdb/file_system.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kmosaic {

// Wraps the default file system. Remembers how much of each file was synced; LoseUnsynced
// cuts every file back to that. Thread-safe; files must be closed before LoseUnsynced.
class UnsyncedLossFileSystem : public rocksdb::FileSystemWrapper {
 public:
  UnsyncedLossFileSystem();
  const char* Name() const override { return "UnsyncedLossFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  // Cuts files to their synced length; returns how many bytes went.
  uint64_t LoseUnsynced();

  // Called by the files.
  void Synced(const std::string& name, uint64_t size);

 private:
  std::mutex mutex_;
  std::map<std::string, uint64_t> synced_bytes_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_TESTING_UNSYNCED_LOSS_FS_H_
