#include "coordinator/store/rocksdb_task_store.h"

#include <rocksdb/db.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "common/lifecycle/child_process.h"
#include "coordinator/store/store_identity.h"
#include "tests/testing/temp_directory.h"
#include "tests/testing/unsynced_loss_fs.h"

namespace kmosaic {
namespace {

bool Contains(const absl::Status& status, const std::string& part) {
  return std::string(status.message()).find(part) != std::string::npos;
}

WriteBatch Pair(uint32_t number) {
  WriteBatch batch;
  batch.Put(Family::kItem, keys::Item(1, number), std::string(100, 'i'));
  batch.Put(Family::kStep, keys::Step(1, number, 0), std::string(5000, 's'));
  return batch;
}

bool HasPair(const TaskStore& store, uint32_t number) {
  bool item = store.Get(Family::kItem, keys::Item(1, number)).ok();
  bool step = store.Get(Family::kStep, keys::Step(1, number, 0)).ok();
  CHECK(item == step);
  return item && step;
}

TEST_CASE("what was written is there after the store was closed and opened") {
  TempDirectory directory;
  {
    auto store = RocksDbTaskStore::Open(directory.File("store"), {});
    REQUIRE(store.ok());
    REQUIRE((*store)->Write(Pair(1)).ok());
  }
  auto store = RocksDbTaskStore::Open(directory.File("store"), {});
  REQUIRE(store.ok());
  CHECK(HasPair(**store, 1));
}

TEST_CASE("a second opener is told who has the store and where it is") {
  TempDirectory directory;
  auto first = RocksDbTaskStore::Open(directory.path(), {});
  REQUIRE(first.ok());
  // Twice: a failed opening must not take the lock from the holder.
  for (int round = 0; round < 2; ++round) {
    auto second = RocksDbTaskStore::Open(directory.path(), {});
    CHECK(second.status().code() == absl::StatusCode::kUnavailable);
    CHECK(Contains(second.status(), directory.path()));
    CHECK(Contains(second.status(), std::to_string(getpid())));
  }
  // From another process as well.
  auto writer =
      ChildProcess::Start({.argv = {KMOSAIC_STORE_WRITER, directory.path()}, .pipe_stdout = true});
  REQUIRE(writer.ok());
  CHECK(writer->Wait(absl::Seconds(60)) == 3);
  first->reset();
  CHECK(RocksDbTaskStore::Open(directory.path(), {}).ok());
}

TEST_CASE("families of a newer program are refused, not ignored") {
  TempDirectory directory;
  { REQUIRE(RocksDbTaskStore::Open(directory.path(), {}).ok()); }
  {
    std::vector<std::string> names;
    REQUIRE(rocksdb::DB::ListColumnFamilies({}, directory.path(), &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    families.emplace_back("from_the_future", rocksdb::ColumnFamilyOptions());
    rocksdb::DBOptions options;
    options.create_missing_column_families = true;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    REQUIRE(rocksdb::DB::Open(options, directory.path(), families, &handles, &db).ok());
    for (auto* handle : handles) REQUIRE(db->DestroyColumnFamilyHandle(handle).ok());
    delete db;
  }
  auto store = RocksDbTaskStore::Open(directory.path(), {});
  CHECK(store.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(Contains(store.status(), "newer"));
}

TEST_CASE("acknowledged writes survive the loss of every unsynced byte") {
  TempDirectory directory;
  auto fs = std::make_shared<UnsyncedLossFileSystem>();
  RocksDbOptions options{.file_system = fs};
  uint32_t acked = 0;
  for (int round = 0; round < 5; ++round) {
    auto store = RocksDbTaskStore::Open(directory.path(), options);
    REQUIRE(store.ok());
    for (uint32_t i = 0; i < acked; ++i) CHECK(HasPair(**store, i));
    for (int i = 0; i < 40; ++i) {
      REQUIRE((*store)->Write(Pair(acked)).ok());
      ++acked;
    }
    store->reset();
    fs->LoseUnsynced();
  }
  auto store = RocksDbTaskStore::Open(directory.path(), options);
  REQUIRE(store.ok());
  for (uint32_t i = 0; i < acked; ++i) CHECK(HasPair(**store, i));
}

TEST_CASE("acknowledged writes survive kill -9 of the writer") {
  TempDirectory directory;
  int64_t acked = -1;
  for (int round = 0; round < 5; ++round) {
    auto writer = ChildProcess::Start(
        {.argv = {KMOSAIC_STORE_WRITER, directory.path()}, .pipe_stdout = true});
    REQUIRE(writer.ok());
    for (int line = 0; line < 50 + 37 * round; ++line) {
      auto text = writer->ReadLine(absl::Seconds(60));
      REQUIRE(text.ok());
      int64_t number = 0;
      REQUIRE(absl::SimpleAtoi(*text, &number));
      // It goes on behind everything it ever acknowledged.
      CHECK(number > acked);
      acked = number;
    }
    writer->Signal(SIGKILL);
    CHECK(writer->Wait(absl::Seconds(60)) == 128 + SIGKILL);
    auto store = RocksDbTaskStore::Open(directory.path(), {});
    REQUIRE(store.ok());
    for (int64_t i = 0; i <= acked; ++i) CHECK(HasPair(**store, static_cast<uint32_t>(i)));
  }
}

TEST_CASE("write-ahead logs stay bounded when one family is never written") {
  TempDirectory directory;
  RocksDbOptions options{.max_wal_bytes = 1 << 20};
  auto store = RocksDbTaskStore::Open(directory.path(), options);
  REQUIRE(store.ok());
  WriteBatch cold;
  cold.Put(Family::kMeta, "cold", "1");
  REQUIRE((*store)->Write(cold).ok());
  for (uint32_t i = 0; i < 400; ++i) {
    WriteBatch batch;
    batch.Put(Family::kEvent, keys::Event(1, i), std::string(32 << 10, 'e'));
    REQUIRE((*store)->Write(batch).ok());
  }
  uintmax_t logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().extension() == ".log") logs += entry.file_size();
  }
  // 12.5 MiB were written.
  CHECK(logs < (6u << 20));
}

}  // namespace
}  // namespace kmosaic
