#include "coordinator/service/blob_files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/base/digest.h"
#include "tests/testing/temp_dir.h"

namespace kmosaic {
namespace {

std::string Read(const BlobFiles& files, const std::string& digest) {
  std::string bytes;
  absl::Status status = files.Get(digest, [&](std::string chunk) {
    bytes += chunk;
    return true;
  });
  return status.ok() ? bytes : status.ToString();
}

size_t FilesIn(const std::string& directory) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) ++count;
  }
  return count;
}

TEST_CASE("a blob comes back as it was put, also after a restart") {
  TempDir directory;
  std::string bytes = std::string(1 << 20, 'x') + '\0' + "end";
  std::string digest = Sha256Hex(bytes);
  {
    auto files = BlobFiles::Open(directory.path());
    REQUIRE(files.ok());
    auto writer = (*files)->Put(digest);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->Append(bytes.substr(0, 1000)).ok());
    REQUIRE((*writer)->Append(bytes.substr(1000)).ok());
    CHECK((*writer)->Commit().value() == bytes.size());
  }
  auto files = BlobFiles::Open(directory.path());
  REQUIRE(files.ok());
  CHECK(Read(**files, digest) == bytes);
}

TEST_CASE("putting a blob again is harmless") {
  TempDir directory;
  auto files = BlobFiles::Open(directory.path());
  for (int i = 0; i < 2; ++i) {
    auto writer = (*files)->Put(Sha256Hex("x"));
    REQUIRE((*writer)->Append("x").ok());
    CHECK((*writer)->Commit().ok());
  }
  CHECK(FilesIn(directory.path()) == 1);
}

TEST_CASE("bytes without the digest leave nothing") {
  TempDir directory;
  auto files = BlobFiles::Open(directory.path());
  {
    auto writer = (*files)->Put(Sha256Hex("right"));
    REQUIRE((*writer)->Append("wrong").ok());
    CHECK(absl::IsInvalidArgument((*writer)->Commit().status()));
  }
  CHECK(FilesIn(directory.path()) == 0);
  CHECK_THAT(Read(**files, Sha256Hex("right")), Catch::StartsWith("NOT_FOUND"));
}

TEST_CASE("a blob that is given up or cut off by a crash leaves nothing") {
  TempDir directory;
  {
    auto files = BlobFiles::Open(directory.path());
    { auto writer = (*files)->Put(Sha256Hex("x")); }
    CHECK(FilesIn(directory.path()) == 0);
  }
  std::ofstream(directory.path() + "/incoming/left-behind") << "half";
  auto files = BlobFiles::Open(directory.path());
  CHECK(FilesIn(directory.path()) == 0);
}

TEST_CASE("a blob has a largest size") {
  TempDir directory;
  auto files = BlobFiles::Open(directory.path(), 10);
  auto writer = (*files)->Put(Sha256Hex("0123456789"));
  CHECK((*writer)->Append("0123456789").ok());
  CHECK(absl::IsResourceExhausted((*writer)->Append("x")));
}

TEST_CASE("a digest is a digest and never a path") {
  TempDir directory;
  auto files = BlobFiles::Open(directory.path());
  for (const std::string& digest :
       {std::string(), std::string("../../etc/passwd"), std::string(64, 'A'),
        std::string(62, 'a') + "/b", std::string(63, 'a')}) {
    CHECK(absl::IsInvalidArgument((*files)->Put(digest).status()));
    CHECK_THAT(Read(**files, digest), Catch::StartsWith("INVALID_ARGUMENT"));
  }
}

TEST_CASE("a reader may stop early") {
  TempDir directory;
  auto files = BlobFiles::Open(directory.path());
  auto writer = (*files)->Put(Sha256Hex("x"));
  REQUIRE((*writer)->Append("x").ok());
  REQUIRE((*writer)->Commit().ok());
  CHECK(absl::IsCancelled((*files)->Get(Sha256Hex("x"), [](std::string) { return false; })));
}

}  // namespace
}  // namespace kmosaic
