#include "coordinator/store/backup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/store/store_identity.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

constexpr char kMarker[] = "BACKUP";

absl::Status Sync(const fs::path& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path.string()));
  int failed = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return failed == 0 ? absl::OkStatus() : ErrnoStatus(failed, absl::StrCat("sync ", path.string()));
}

// Every file and folder, deepest last.
absl::Status SyncTree(const fs::path& root) {
  std::error_code error;
  fs::recursive_directory_iterator each(root, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    KMOSAIC_RETURN_IF_ERROR(Sync(each->path()));
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("list ", root.string()));
  return Sync(root);
}

// Copies a tree of files; `link` makes hard links where that works. What vanishes meanwhile
// (half-written blobs) is left out.
absl::Status CopyTree(const fs::path& from, const fs::path& to, bool link) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make ", to.string()));
  if (!fs::exists(from, error)) return absl::OkStatus();
  fs::recursive_directory_iterator each(from, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    fs::path target = to / fs::relative(each->path(), from);
    std::error_code failed;
    if (each->is_directory(failed)) {
      fs::create_directories(target, failed);
    } else {
      if (link) fs::create_hard_link(each->path(), target, failed);
      if (!link || failed) {
        failed.clear();
        fs::copy_file(each->path(), target, failed);
      }
    }
    if (failed == std::errc::no_such_file_or_directory) continue;
    if (failed) return ErrnoStatus(failed.value(), absl::StrCat("write ", target.string()));
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("list ", from.string()));
  return absl::OkStatus();
}

absl::StatusOr<BackupSize> SizeOf(const fs::path& root) {
  BackupSize size;
  std::error_code error;
  fs::recursive_directory_iterator each(root, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    if (!each->is_regular_file()) continue;
    ++size.files;
    size.bytes += each->file_size();
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("list ", root.string()));
  return size;
}

absl::Status WriteMarker(const fs::path& directory) {
  {
    std::ofstream file(directory / kMarker);
    file << "kernelmosaic backup, schema " << kSchemaVersion << "\n";
    if (!file.flush()) {
      return absl::InternalError(absl::StrCat("cannot write ", (directory / kMarker).string()));
    }
  }
  KMOSAIC_RETURN_IF_ERROR(Sync(directory / kMarker));
  return Sync(directory);
}

}  // namespace

std::string StoreDirectory(const std::string& data_dir, size_t shard) {
  return shard == 0 ? data_dir + "/store" : absl::StrCat(data_dir, "/store-", shard);
}

size_t CountStores(const std::string& data_dir) {
  size_t stores = 0;
  std::error_code error;
  while (fs::is_directory(StoreDirectory(data_dir, stores), error)) ++stores;
  return stores;
}

std::string BlobDirectory(const std::string& data_dir) { return data_dir + "/blobs"; }

absl::StatusOr<BackupSize> MakeBackup(const std::vector<const RocksDbTaskStore*>& stores,
                                      const std::string& data_dir, const std::string& directory) {
  if (!fs::path(directory).is_absolute()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "directory: '", directory, "' has to be an absolute path on the coordinator's machine"));
  }
  std::error_code error;
  if (fs::exists(directory, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(directory, " exists; a backup is made where nothing is"));
  }
  fs::create_directories(directory, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make ", directory));
  absl::Status status;
  for (size_t shard = 0; shard < stores.size() && status.ok(); ++shard) {
    status = stores[shard]->Checkpoint(StoreDirectory(directory, shard));
  }
  if (status.ok()) {
    status = CopyTree(BlobDirectory(data_dir), BlobDirectory(directory), /*link=*/true);
  }
  if (status.ok()) status = SyncTree(directory);
  if (status.ok()) status = WriteMarker(directory);
  if (!status.ok()) {
    fs::remove_all(directory, error);
    return Annotate(status, "backup");
  }
  return SizeOf(directory);
}

absl::StatusOr<BackupSize> RestoreBackup(const std::string& directory, const std::string& data_dir,
                                         const std::string& fresh_incarnation) {
  std::error_code error;
  if (!fs::exists(fs::path(directory) / kMarker, error)) {
    return absl::NotFoundError(
        absl::StrCat(directory, " is no finished backup: the file ", kMarker, " is missing in it"));
  }
  if (fs::exists(data_dir, error) && !fs::is_empty(data_dir, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(data_dir, " is not empty; restore to a new data directory"));
  }
  fs::path target = fs::absolute(data_dir).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  fs::path making = target.string() + ".restoring";
  fs::remove_all(making, error);
  auto restore = [&]() -> absl::Status {
    // Copies, not links: the store that starts here must not be able to harm the backup.
    size_t stores = CountStores(directory);
    for (size_t shard = 0; shard < stores; ++shard) {
      KMOSAIC_RETURN_IF_ERROR(
          CopyTree(StoreDirectory(directory, shard), StoreDirectory(making, shard), false));
    }
    KMOSAIC_RETURN_IF_ERROR(CopyTree(BlobDirectory(directory), BlobDirectory(making), false));
    for (size_t shard = 0; shard < stores; ++shard) {
      KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<RocksDbTaskStore> store,
                               RocksDbTaskStore::Open(StoreDirectory(making, shard), {}));
      KMOSAIC_RETURN_IF_ERROR(store->VerifyChecksums());
      KMOSAIC_RETURN_IF_ERROR(Reincarnate(*store, fresh_incarnation));
    }
    KMOSAIC_RETURN_IF_ERROR(SyncTree(making));
    std::error_code failed;
    fs::remove(target, failed);  // The empty directory, if there is one.
    fs::rename(making, target, failed);
    if (failed) return ErrnoStatus(failed.value(), absl::StrCat("rename to ", target.string()));
    return Sync(target.parent_path());
  };
  if (absl::Status status = restore(); !status.ok()) {
    fs::remove_all(making, error);
    return Annotate(status, absl::StrCat("restore of ", directory));
  }
  return SizeOf(target);
}

}  // namespace kmosaic
