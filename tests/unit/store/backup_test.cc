#include "coordinator/store/backup.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "coordinator/store/store_identity.h"
#include "tests/testing/temp_directory.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

WriteBatch Row(uint32_t number) {
  WriteBatch batch;
  batch.Put(Family::kStep, keys::Step(1, number, 0), std::string(5000, 's'));
  return batch;
}

bool HasRow(const TaskStore& store, uint32_t number) {
  return store.Get(Family::kStep, keys::Step(1, number, 0)).ok();
}

void WriteFile(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A data directory whose store is open.
struct DataDirectory {
  explicit DataDirectory(const TempDirectory& parent) : path(parent.File("data")) {
    auto opened = RocksDbTaskStore::Open(StoreDirectory(path), {});
    REQUIRE(opened.ok());
    store = *std::move(opened);
    REQUIRE(StartOn(*store, "first").ok());
    REQUIRE(store->Write(Row(1)).ok());
    WriteFile(fs::path(BlobDirectory(path)) / "ab" / "cd", "blob");
  }

  std::string path;
  std::unique_ptr<RocksDbTaskStore> store;
};

TEST_CASE(
    "a backup holds what was durable when it was made, and restores under a new incarnation") {
  TempDirectory directory;
  DataDirectory data(directory);
  auto made = MakeBackup({data.store.get()}, data.path, directory.File("backup"));
  INFO(made.status().ToString());
  REQUIRE(made.ok());
  CHECK(made->files > 3);
  CHECK(made->bytes > 5000);
  REQUIRE(data.store->Write(Row(2)).ok());

  auto restored = RestoreBackup(directory.File("backup"), directory.File("new"), "second");
  INFO(restored.status().ToString());
  REQUIRE(restored.ok());
  auto store = RocksDbTaskStore::Open(StoreDirectory(directory.File("new")), {});
  REQUIRE(store.ok());
  CHECK(HasRow(**store, 1));
  CHECK_FALSE(HasRow(**store, 2));
  CHECK((*store)->VerifyChecksums().ok());
  auto identity = StartOn(**store, "unused");
  REQUIRE(identity.ok());
  CHECK(identity->incarnation == "second");
  CHECK(identity->epoch == 2);
  CHECK(fs::exists(fs::path(BlobDirectory(directory.File("new"))) / "ab" / "cd"));
  // The running store is as it was.
  CHECK(HasRow(*data.store, 2));
  CHECK(*data.store->Get(Family::kMeta, keys::kIncarnation) == "first");
}

TEST_CASE("a backup is made where nothing is, and restored where nothing is") {
  TempDirectory directory;
  DataDirectory data(directory);
  CHECK(MakeBackup({data.store.get()}, data.path, "relative").status().code() ==
        absl::StatusCode::kInvalidArgument);
  REQUIRE(MakeBackup({data.store.get()}, data.path, directory.File("backup")).ok());
  CHECK(MakeBackup({data.store.get()}, data.path, directory.File("backup")).status().code() ==
        absl::StatusCode::kAlreadyExists);
  WriteFile(fs::path(directory.File("full")) / "file", "x");
  CHECK(RestoreBackup(directory.File("backup"), directory.File("full"), "x").status().code() ==
        absl::StatusCode::kAlreadyExists);
  fs::create_directories(directory.File("empty"));
  CHECK(RestoreBackup(directory.File("backup"), directory.File("empty"), "x").ok());
}

TEST_CASE("a backup that was not finished is not restored") {
  TempDirectory directory;
  DataDirectory data(directory);
  REQUIRE(MakeBackup({data.store.get()}, data.path, directory.File("backup")).ok());
  fs::remove(fs::path(directory.File("backup")) / "BACKUP");
  CHECK(RestoreBackup(directory.File("backup"), directory.File("new"), "x").status().code() ==
        absl::StatusCode::kNotFound);
  CHECK_FALSE(fs::exists(directory.File("new")));
}

TEST_CASE("a damaged table file is found, and is not restored") {
  TempDirectory directory;
  DataDirectory data(directory);
  for (uint32_t i = 2; i < 200; ++i) REQUIRE(data.store->Write(Row(i)).ok());
  // Closed and opened, so that rows lie in table or blob files.
  data.store.reset();
  auto reopened = RocksDbTaskStore::Open(StoreDirectory(data.path), {});
  REQUIRE(reopened.ok());
  REQUIRE(MakeBackup({reopened->get()}, data.path, directory.File("backup")).ok());
  bool damaged = false;
  for (const auto& entry : fs::directory_iterator(StoreDirectory(directory.File("backup")))) {
    if (entry.path().extension() != ".blob" && entry.path().extension() != ".sst") continue;
    // The file may be a link to the running store's.
    std::string bytes;
    {
      std::ifstream in(entry.path(), std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    fs::remove(entry.path());
    for (size_t i = 200; i < bytes.size(); i += 100) bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    std::ofstream(entry.path(), std::ios::binary) << bytes;
    damaged = true;
  }
  REQUIRE(damaged);
  CHECK_FALSE(RestoreBackup(directory.File("backup"), directory.File("new"), "x").ok());
  CHECK_FALSE(fs::exists(directory.File("new")));
  CHECK(HasRow(**reopened, 150));
}

TEST_CASE("a store is read without being changed, also while it is open") {
  TempDirectory directory;
  DataDirectory data(directory);
  auto reader = RocksDbTaskStore::OpenReadOnly(StoreDirectory(data.path));
  INFO(reader.status().ToString());
  REQUIRE(reader.ok());
  CHECK(HasRow(**reader, 1));
  CHECK_FALSE((*reader)->Write(Row(9)).ok());
  CHECK(data.store->Write(Row(2)).ok());
  CHECK(RocksDbTaskStore::OpenReadOnly(directory.File("nothing")).status().code() ==
        absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace kmosaic
