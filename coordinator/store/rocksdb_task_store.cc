#include "coordinator/store/rocksdb_task_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

// Who has the store open, for the message of the one who comes second. Only words: the
// lock itself is RocksDB's.
constexpr char kHolderFile[] = "HOLDER";

// A batch buffer is kept for the next write up to this size.
constexpr size_t kKeptBatchBytes = 16u << 20;

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }

absl::Status FromRocks(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  std::string message = absl::StrCat(std::string(what), ": ", status.ToString());
  if (status.IsNotFound()) return absl::NotFoundError(message);
  if (status.IsCorruption()) return absl::DataLossError(message);
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

rocksdb::ColumnFamilyOptions FamilyOptions(Family family,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // Rows of live items come and go; most are gone before their buffer is full.
  options.write_buffer_size = 32ull << 20;
  if (family == Family::kStep || family == Family::kTask || family == Family::kTaskSpec) {
    // Texts of some KiB that are written once: kept out of the tables, so that
    // compaction does not copy them again and again.
    options.enable_blob_files = true;
    options.min_blob_size = 4096;
    options.enable_blob_garbage_collection = true;
  }
  return options;
}

std::string ReadHolder(const std::string& directory) {
  std::ifstream file(directory + "/" + kHolderFile);
  std::string holder;
  std::getline(file, holder);
  return holder;
}

void WriteHolder(const std::string& directory) {
  std::ofstream file(directory + "/" + kHolderFile, std::ios::trunc);
  file << "process " << getpid() << " on " << HostName() << "\n";
}

bool IsLockConflict(const rocksdb::Status& status) {
  std::string text = status.ToString();
  return status.IsIOError() &&
         (text.find("lock ") != std::string::npos || text.find("LOCK") != std::string::npos);
}

absl::StatusOr<std::string> GetFrom(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
                                    const rocksdb::Snapshot* snapshot, std::string_view key) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  std::string value;
  rocksdb::Status status = db->Get(options, handle, ToSlice(key), &value);
  if (!status.ok()) return FromRocks(status, absl::StrCat("get from ", handle->GetName()));
  return value;
}

class RocksCursor : public StoreCursor {
 public:
  // The iterator keeps pointers to the bounds, so they live here.
  RocksCursor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
              const rocksdb::Snapshot* snapshot, const keys::Range& range)
      : range_(range), begin_(ToSlice(range_.begin)), end_(ToSlice(range_.end)) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.iterate_lower_bound = &begin_;
    if (!range_.end.empty()) options.iterate_upper_bound = &end_;
    iterator_.reset(db->NewIterator(options, handle));
    iterator_->Seek(begin_);
  }
  bool Valid() const override { return iterator_->Valid(); }
  void Next() override { iterator_->Next(); }
  std::string_view key() const override { return iterator_->key().ToStringView(); }
  std::string_view value() const override { return iterator_->value().ToStringView(); }
  absl::Status status() const override { return FromRocks(iterator_->status(), "scan"); }

 private:
  const keys::Range range_;
  const rocksdb::Slice begin_;
  const rocksdb::Slice end_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace

struct RocksDbTaskStore::Impl {
  std::unique_ptr<rocksdb::Env> env;
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies.size()> handles{};
  // RocksDB wants the handle of the family "default" closed too; nothing is in it.
  rocksdb::ColumnFamilyHandle* default_handle = nullptr;

  std::mutex write_mutex;
  rocksdb::WriteBatch batch ABSL_GUARDED_BY(write_mutex);
  // First failed write; nothing is written after it.
  absl::Status failure ABSL_GUARDED_BY(write_mutex);

  rocksdb::ColumnFamilyHandle* handle(Family family) const {
    return handles[static_cast<size_t>(family)];
  }

  ~Impl() {
    if (db == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* each : handles) {
      if (each != nullptr) db->DestroyColumnFamilyHandle(each).PermitUncheckedError();
    }
    if (default_handle != nullptr) {
      db->DestroyColumnFamilyHandle(default_handle).PermitUncheckedError();
    }
    db->Close().PermitUncheckedError();
  }
};

namespace {

class RocksSnapshot : public StoreSnapshot {
 public:
  RocksSnapshot(rocksdb::DB* db, std::array<rocksdb::ColumnFamilyHandle*, kFamilies.size()> handles)
      : db_(db), handles_(handles), snapshot_(db->GetSnapshot()) {}
  ~RocksSnapshot() override { db_->ReleaseSnapshot(snapshot_); }

  absl::StatusOr<std::string> Get(Family family, std::string_view key) const override {
    return GetFrom(db_, handles_[static_cast<size_t>(family)], snapshot_, key);
  }

  std::unique_ptr<StoreCursor> Scan(Family family, const keys::Range& range) const override {
    return std::make_unique<RocksCursor>(db_, handles_[static_cast<size_t>(family)], snapshot_,
                                         range);
  }

 private:
  rocksdb::DB* const db_;
  const std::array<rocksdb::ColumnFamilyHandle*, kFamilies.size()> handles_;
  const rocksdb::Snapshot* const snapshot_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbTaskStore>> RocksDbTaskStore::Open(
    const std::string& directory, const RocksDbOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot make the data directory ", directory, ": ", error.message()));
  }
  auto impl = std::make_unique<Impl>();
  rocksdb::DBOptions db_options;
  db_options.create_if_missing = true;
  db_options.create_missing_column_families = true;
  db_options.max_total_wal_size = options.max_wal_bytes;
  db_options.db_write_buffer_size = options.write_buffer_bytes;
  db_options.keep_log_file_num = 5;
  db_options.max_log_file_size = 4ull << 20;
  if (options.file_system != nullptr) {
    impl->env = rocksdb::NewCompositeEnv(options.file_system);
    db_options.env = impl->env.get();
  }

  std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (Family family : kFamilies) {
    families.emplace_back(std::string(FamilyName(family)), FamilyOptions(family, cache));
  }
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());

  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(db_options, directory, families, &handles, &db);
  if (IsLockConflict(status)) {
    std::string holder = ReadHolder(directory);
    return absl::UnavailableError(absl::StrCat(
        "the data directory ", directory, " is in use by ",
        holder.empty() ? "another coordinator" : holder,
        ": stop it, or give this one another data directory (", status.ToString(), ")"));
  }
  if (status.IsInvalidArgument() && status.ToString().find("olumn famil") != std::string::npos) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store in ", directory,
        " holds families that this program does not know; a newer kmosaic-coordinator wrote it: ",
        status.ToString()));
  }
  if (!status.ok()) return FromRocks(status, absl::StrCat("open the store in ", directory));

  impl->db.reset(db);
  std::copy_n(handles.begin(), kFamilies.size(), impl->handles.begin());
  impl->default_handle = handles.back();
  WriteHolder(directory);
  return std::unique_ptr<RocksDbTaskStore>(new RocksDbTaskStore(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<RocksDbTaskStore>> RocksDbTaskStore::OpenReadOnly(
    const std::string& directory) {
  std::vector<std::string> present;
  rocksdb::Status status =
      rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory, &present);
  if (!status.ok()) {
    return absl::NotFoundError(
        absl::StrCat("there is no store in ", directory, ": ", status.ToString()));
  }
  std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(RocksDbOptions().block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (Family family : kFamilies) {
    std::string name(FamilyName(family));
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the store in ", directory, " has no family ", name,
          "; an earlier version wrote it: start a coordinator on it once, which migrates it"));
    }
    families.emplace_back(name, FamilyOptions(family, cache));
  }
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  rocksdb::DBOptions db_options;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  status = rocksdb::DB::OpenForReadOnly(db_options, directory, families, &handles, &db);
  if (!status.ok()) return FromRocks(status, absl::StrCat("open the store in ", directory));
  auto impl = std::make_unique<Impl>();
  impl->db.reset(db);
  std::copy_n(handles.begin(), kFamilies.size(), impl->handles.begin());
  impl->default_handle = handles.back();
  return std::unique_ptr<RocksDbTaskStore>(new RocksDbTaskStore(std::move(impl)));
}

absl::Status RocksDbTaskStore::Checkpoint(const std::string& directory) const {
  rocksdb::Checkpoint* made = nullptr;
  KMOSAIC_RETURN_IF_ERROR(
      FromRocks(rocksdb::Checkpoint::Create(impl_->db.get(), &made), "prepare a checkpoint"));
  std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  // Without a flush: the write-ahead logs are copied too.
  return FromRocks(checkpoint->CreateCheckpoint(directory, UINT64_MAX),
                   absl::StrCat("checkpoint to ", directory));
}

absl::Status RocksDbTaskStore::VerifyChecksums() const {
  return FromRocks(impl_->db->VerifyChecksum(), "verify the store's checksums");
}

RocksDbTaskStore::RocksDbTaskStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RocksDbTaskStore::~RocksDbTaskStore() = default;

absl::Status RocksDbTaskStore::Write(const WriteBatch& batch) {
  std::lock_guard lock(impl_->write_mutex);
  if (!impl_->failure.ok()) return impl_->failure;
  // Used again, so that its memory is.
  rocksdb::WriteBatch& rocks = impl_->batch;
  rocks.Clear();
  rocksdb::Status status;
  for (const WriteBatch::Operation& operation : batch.operations()) {
    rocksdb::ColumnFamilyHandle* handle = impl_->handle(operation.family);
    switch (operation.kind) {
      case WriteBatch::Operation::Kind::kPut:
        status = rocks.Put(handle, operation.key, operation.value);
        break;
      case WriteBatch::Operation::Kind::kDelete:
        status = rocks.Delete(handle, operation.key);
        break;
      case WriteBatch::Operation::Kind::kDeleteRange:
        status = rocks.DeleteRange(handle, operation.key, operation.value);
        break;
    }
    if (!status.ok()) break;
  }
  if (status.ok()) {
    rocksdb::WriteOptions options;
    options.sync = true;
    status = impl_->db->Write(options, &rocks);
  }
  // One that was very large would be kept for ever.
  if (rocks.GetDataSize() > kKeptBatchBytes) rocks = rocksdb::WriteBatch();
  impl_->failure = FromRocks(status, "write to the store");
  return impl_->failure;
}

absl::StatusOr<std::string> RocksDbTaskStore::Get(Family family, std::string_view key) const {
  return GetFrom(impl_->db.get(), impl_->handle(family), nullptr, key);
}

std::unique_ptr<StoreSnapshot> RocksDbTaskStore::Snapshot() const {
  return std::make_unique<RocksSnapshot>(impl_->db.get(), impl_->handles);
}

}  // namespace kmosaic
