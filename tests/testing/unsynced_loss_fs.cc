#include "tests/testing/unsynced_loss_fs.h"

#include <filesystem>
#include <utility>

namespace kmosaic {
namespace {

class TrackedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  TrackedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name,
              UnsyncedLossFileSystem* fs)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), fs_(fs) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (status.ok()) size_ += data.size();
    return status;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& info,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, info, debug);
    if (status.ok()) size_ += data.size();
    return status;
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    return Note(FSWritableFileOwnerWrapper::Sync(options, debug));
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    return Note(FSWritableFileOwnerWrapper::Fsync(options, debug));
  }

 private:
  rocksdb::IOStatus Note(rocksdb::IOStatus status) {
    if (status.ok()) fs_->Synced(name_, size_);
    return status;
  }

  const std::string name_;
  UnsyncedLossFileSystem* const fs_;
  uint64_t size_ = 0;
};

}  // namespace

UnsyncedLossFileSystem::UnsyncedLossFileSystem()
    : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

rocksdb::IOStatus UnsyncedLossFileSystem::NewWritableFile(
    const std::string& name, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* file, rocksdb::IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSWritableFile> base;
  rocksdb::IOStatus status = target()->NewWritableFile(name, options, &base, debug);
  if (!status.ok()) return status;
  Synced(name, 0);
  *file = std::make_unique<TrackedFile>(std::move(base), name, this);
  return status;
}

rocksdb::IOStatus UnsyncedLossFileSystem::ReuseWritableFile(
    const std::string& name, const std::string& old_name, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* file, rocksdb::IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSWritableFile> base;
  rocksdb::IOStatus status = target()->ReuseWritableFile(name, old_name, options, &base, debug);
  if (!status.ok()) return status;
  Synced(name, 0);
  *file = std::make_unique<TrackedFile>(std::move(base), name, this);
  return status;
}

rocksdb::IOStatus UnsyncedLossFileSystem::RenameFile(const std::string& from, const std::string& to,
                                                     const rocksdb::IOOptions& options,
                                                     rocksdb::IODebugContext* debug) {
  rocksdb::IOStatus status = target()->RenameFile(from, to, options, debug);
  std::lock_guard lock(mutex_);
  auto found = synced_bytes_.find(from);
  if (status.ok() && found != synced_bytes_.end()) {
    synced_bytes_[to] = found->second;
    synced_bytes_.erase(from);
  }
  return status;
}

rocksdb::IOStatus UnsyncedLossFileSystem::DeleteFile(const std::string& name,
                                                     const rocksdb::IOOptions& options,
                                                     rocksdb::IODebugContext* debug) {
  std::lock_guard lock(mutex_);
  synced_bytes_.erase(name);
  return target()->DeleteFile(name, options, debug);
}

void UnsyncedLossFileSystem::Synced(const std::string& name, uint64_t size) {
  std::lock_guard lock(mutex_);
  synced_bytes_[name] = size;
}

uint64_t UnsyncedLossFileSystem::LoseUnsynced() {
  std::lock_guard lock(mutex_);
  uint64_t lost = 0;
  for (const auto& [name, synced] : synced_bytes_) {
    std::error_code error;
    uint64_t size = std::filesystem::file_size(name, error);
    if (error || size <= synced) continue;
    std::filesystem::resize_file(name, synced);
    lost += size - synced;
  }
  return lost;
}

}  // namespace kmosaic
