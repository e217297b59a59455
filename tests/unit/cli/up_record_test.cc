#include "cli/program/up_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;
namespace fs = std::filesystem;

namespace {

size_t FilesIn(const std::string& directory) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(directory)) count += entry.exists() ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("A published record is found while it lives and gone afterwards") {
  TempDir temp;
  std::string directory = temp.path() + "/run";
  CHECK(FindUpRecords(directory).empty());
  {
    auto record =
        PublishedUpRecord::Publish(directory, {42, "127.0.0.1:1", "127.0.0.1:2", "/data"});
    REQUIRE(record.ok());
    auto found = FindUpRecords(directory);
    REQUIRE(found.size() == 1);
    CHECK(found[0].pid == 42);
    CHECK(found[0].coordinator == "127.0.0.1:1");
    CHECK(found[0].http == "127.0.0.1:2");
    CHECK(found[0].data == "/data");
  }
  CHECK(FindUpRecords(directory).empty());
  CHECK(FilesIn(directory) == 0);
}

TEST_CASE("Only its user can read a record") {
  TempDir temp;
  std::string directory = temp.path() + "/run";
  auto record = PublishedUpRecord::Publish(directory, {1, "a:1", "", "/d"});
  REQUIRE(record.ok());
  struct stat info {};
  REQUIRE(stat(directory.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  for (const auto& entry : fs::directory_iterator(directory)) {
    REQUIRE(stat(entry.path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
  }
}

TEST_CASE("What a killed one left behind is not believed and removed") {
  TempDir temp;
  WriteFile(temp.path() + "/up-7-r.json",
            "{\"pid\": 1, \"coordinator\": \"a:1\", \"http\": \"\", \"data\": \"/d\"}");
  CHECK(FindUpRecords(temp.path()).empty());
  CHECK_FALSE(fs::exists(temp.path() + "/up-7-r.json"));
}

TEST_CASE("A record that others may write is ignored") {
  TempDir temp;
  auto record = PublishedUpRecord::Publish(temp.path(), {1, "a:1", "", "/d"});
  REQUIRE(record.ok());
  for (const auto& entry : fs::directory_iterator(temp.path())) {
    fs::permissions(entry.path(), fs::perms::group_write, fs::perm_options::add);
  }
  CHECK(FindUpRecords(temp.path()).empty());
}

TEST_CASE("The record's place follows the environment") {
  TestHost test;
  test.host.env = {{"XDG_RUNTIME_DIR", "/run/user/7"}, {"HOME", "/home/x"}};
  CHECK(UpRecordDirectory(test.host) == "/run/user/7/kmosaic");
  test.host.env.erase("XDG_RUNTIME_DIR");
  CHECK(UpRecordDirectory(test.host) == "/home/x/.local/state/kmosaic/run");
}
