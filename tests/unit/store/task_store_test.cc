// The contract of TaskStore, for every implementation.
#include "coordinator/store/task_store.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/store/memory_task_store.h"
#include "coordinator/store/rocksdb_task_store.h"
#include "tests/testing/fault_task_store.h"
#include "tests/testing/temp_directory.h"

namespace kmosaic {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs ReadAll(const StoreSnapshot& snapshot, Family family, const keys::Range& range) {
  Pairs pairs;
  auto cursor = snapshot.Scan(family, range);
  for (; cursor->Valid(); cursor->Next()) pairs.emplace_back(cursor->key(), cursor->value());
  CHECK(cursor->status().ok());
  return pairs;
}

// One of each kind; what it needs lives as long as it.
struct Subject {
  std::unique_ptr<TempDirectory> directory;
  std::unique_ptr<TaskStore> base;
  std::unique_ptr<TaskStore> store;
};

Subject Make(const std::string& kind) {
  Subject subject;
  if (kind == "rocksdb") {
    subject.directory = std::make_unique<TempDirectory>();
    auto opened = RocksDbTaskStore::Open(subject.directory->path(), {});
    REQUIRE(opened.ok());
    subject.store = *std::move(opened);
  } else if (kind == "fault over memory") {
    subject.base = std::make_unique<MemoryTaskStore>();
    subject.store = std::make_unique<FaultTaskStore>(*subject.base);
  } else {
    subject.store = std::make_unique<MemoryTaskStore>();
  }
  return subject;
}

TEST_CASE("TaskStore contract") {
  std::string kind = GENERATE(as<std::string>(), "memory", "rocksdb", "fault over memory");
  INFO(kind);
  Subject subject = Make(kind);
  TaskStore& store = *subject.store;

  SECTION("a missing key is NOT_FOUND") {
    CHECK(store.Get(Family::kMeta, "none").status().code() == absl::StatusCode::kNotFound);
    CHECK(store.Snapshot()->Get(Family::kMeta, "none").status().code() ==
          absl::StatusCode::kNotFound);
  }

  SECTION("keys and values are bytes, and families do not mix") {
    const std::string bytes("\0\xff\x80 text\0", 9);
    WriteBatch batch;
    batch.Put(Family::kItem, bytes, bytes);
    batch.Put(Family::kStep, bytes, "");
    REQUIRE(store.Write(batch).ok());
    CHECK(*store.Get(Family::kItem, bytes) == bytes);
    CHECK(*store.Get(Family::kStep, bytes) == "");
    CHECK_FALSE(store.Get(Family::kEvent, bytes).ok());
  }

  SECTION("operations of a batch apply in their order") {
    WriteBatch batch;
    batch.Put(Family::kItem, "a", "1");
    batch.Put(Family::kItem, "a", "2");
    batch.Put(Family::kItem, "b", "1");
    batch.Delete(Family::kItem, "b");
    batch.Delete(Family::kItem, "never there");
    batch.Put(Family::kItem, "c", "1");
    batch.DeleteRange(Family::kItem, {"c", "d"});
    batch.Put(Family::kItem, "ca", "after");
    REQUIRE(store.Write(batch).ok());
    CHECK(ReadAll(*store.Snapshot(), Family::kItem, {"", ""}) ==
          Pairs{{"a", "2"}, {"ca", "after"}});
  }

  SECTION("a scan stays inside its bounds and goes in byte order") {
    WriteBatch batch;
    for (const char* key : {"b", "a", "c", "bb", "\xff"}) batch.Put(Family::kEvent, key, key);
    REQUIRE(store.Write(batch).ok());
    auto snapshot = store.Snapshot();
    CHECK(ReadAll(*snapshot, Family::kEvent, {"b", "c"}) == Pairs{{"b", "b"}, {"bb", "bb"}});
    CHECK(ReadAll(*snapshot, Family::kEvent, {"ba", ""}) ==
          Pairs{{"bb", "bb"}, {"c", "c"}, {"\xff", "\xff"}});
    CHECK(ReadAll(*snapshot, Family::kEvent, {"d", "e"}).empty());
    CHECK(ReadAll(*snapshot, Family::kEvent, {"c", "c"}).empty());
    CHECK(ReadAll(*snapshot, Family::kEvent, {"z", "b"}).empty());
  }

  SECTION("a range delete takes exactly its range") {
    WriteBatch batch;
    for (uint32_t i = 0; i < 20; ++i) {
      batch.Put(Family::kItem, keys::Item(1, i), "x");
      batch.Put(Family::kItem, keys::Item(2, i), "x");
    }
    REQUIRE(store.Write(batch).ok());
    WriteBatch removal;
    removal.DeleteRange(Family::kItem, keys::OfJob(1));
    REQUIRE(store.Write(removal).ok());
    CHECK(ReadAll(*store.Snapshot(), Family::kItem, keys::OfJob(1)).empty());
    CHECK(ReadAll(*store.Snapshot(), Family::kItem, keys::OfJob(2)).size() == 20);
  }

  SECTION("a snapshot does not see later writes, and cursors of it agree with it") {
    WriteBatch batch;
    batch.Put(Family::kItem, "a", "1");
    batch.Put(Family::kJobState, "a", "1");
    REQUIRE(store.Write(batch).ok());
    auto before = store.Snapshot();
    WriteBatch later;
    later.Put(Family::kItem, "a", "2");
    later.Put(Family::kItem, "b", "2");
    later.Delete(Family::kJobState, "a");
    REQUIRE(store.Write(later).ok());
    CHECK(*before->Get(Family::kItem, "a") == "1");
    CHECK(*before->Get(Family::kJobState, "a") == "1");
    CHECK(ReadAll(*before, Family::kItem, {"", ""}) == Pairs{{"a", "1"}});
    CHECK(*store.Get(Family::kItem, "a") == "2");
    CHECK_FALSE(store.Get(Family::kJobState, "a").ok());
  }

  SECTION("an empty batch is fine") { CHECK(store.Write(WriteBatch()).ok()); }
}

TEST_CASE("after a failed write every further one is refused") {
  MemoryTaskStore memory;
  FaultTaskStore store(memory);
  WriteBatch batch;
  batch.Put(Family::kMeta, "a", "1");
  auto fault = GENERATE(FaultTaskStore::Fault::kLost, FaultTaskStore::Fault::kApplied);
  store.FailAfter(0, fault);
  CHECK_FALSE(store.Write(batch).ok());
  CHECK(memory.Get(Family::kMeta, "a").ok() == (fault == FaultTaskStore::Fault::kApplied));
  WriteBatch next;
  next.Put(Family::kMeta, "b", "1");
  CHECK_FALSE(store.Write(next).ok());
  CHECK_FALSE(memory.Get(Family::kMeta, "b").ok());
  store.Reopen();
  CHECK(store.Write(next).ok());
}

}  // namespace
}  // namespace kmosaic
