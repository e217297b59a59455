#include "coordinator/store/store_identity.h"

#include <catch2/catch.hpp>

#include "coordinator/store/disk_space.h"
#include "coordinator/store/memory_task_store.h"
#include "tests/testing/fault_task_store.h"

namespace kmosaic {
namespace {

TEST_CASE("each start begins an epoch of its own on the same incarnation") {
  MemoryTaskStore store;
  auto first = StartOn(store, "one");
  auto second = StartOn(store, "two");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->incarnation == "one");
  CHECK(second->incarnation == "one");
  CHECK(first->epoch == 1);
  CHECK(second->epoch == 2);
}

TEST_CASE("an epoch that could not be written is not begun") {
  MemoryTaskStore memory;
  REQUIRE(StartOn(memory, "one").ok());
  FaultTaskStore store(memory);
  store.FailAfter(0, FaultTaskStore::Fault::kApplied);
  CHECK_FALSE(StartOn(store, "one").ok());
  store.Reopen();
  // Epoch 2 reached the disk without anybody learning of it; it is not used again.
  CHECK(StartOn(store, "one")->epoch == 3);
}

TEST_CASE("a store that a newer program wrote is refused") {
  MemoryTaskStore store;
  REQUIRE(StartOn(store, "one").ok());
  WriteBatch batch;
  batch.Put(Family::kMeta, keys::kSchemaVersion, std::to_string(kSchemaVersion + 1));
  REQUIRE(store.Write(batch).ok());
  auto started = StartOn(store, "one");
  CHECK(started.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(started.status().message()).find("newer") != std::string::npos);
  CHECK(*store.Get(Family::kMeta, keys::kEpoch) == "1");
}

TEST_CASE("a damaged meta entry is data loss, not a fresh store") {
  MemoryTaskStore store;
  REQUIRE(StartOn(store, "one").ok());
  WriteBatch batch;
  batch.Put(Family::kMeta, keys::kEpoch, "many");
  REQUIRE(store.Write(batch).ok());
  CHECK(StartOn(store, "two").status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("free space is judged by two marks") {
  DiskMarks marks{.submit_bytes = 100, .read_only_bytes = 10};
  CHECK(JudgeDisk(100, marks) == DiskState::kOk);
  CHECK(JudgeDisk(99, marks) == DiskState::kNoSubmits);
  CHECK(JudgeDisk(10, marks) == DiskState::kNoSubmits);
  CHECK(JudgeDisk(9, marks) == DiskState::kReadOnly);
  CHECK(FreeBytes("/").ok());
  CHECK_FALSE(FreeBytes("/no/such/place").ok());
}

}  // namespace
}  // namespace kmosaic
