#include "coordinator/service/blob_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunkBytes = 256 * 1024;

bool IsDigest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status NotADigest() {
  return absl::InvalidArgumentError("digest is not 64 lower-case hexadecimal characters");
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status SyncDirectory(const fs::path& directory) {
  Descriptor fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("sync ", directory.string()));
  }
  return absl::OkStatus();
}

absl::Status MakeDirectory(const fs::path& directory) {
  std::error_code error;
  bool made = fs::create_directories(directory, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make ", directory.string()));
  return made ? SyncDirectory(directory.parent_path()) : absl::OkStatus();
}

fs::path PathOf(const std::string& directory, const std::string& digest) {
  return fs::path(directory) / digest.substr(0, 2) / digest.substr(2);
}

class FileWriter : public BlobFiles::Writer {
 public:
  FileWriter(std::string digest, fs::path temporary, fs::path target, int fd, uint64_t max_bytes)
      : digest_(std::move(digest)),
        temporary_(std::move(temporary)),
        target_(std::move(target)),
        fd_(fd),
        max_bytes_(max_bytes) {}

  ~FileWriter() override {
    if (!committed_) unlink(temporary_.c_str());
  }

  absl::Status Append(std::string_view bytes) override {
    if (bytes.size() > max_bytes_ - size_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a blob may have at most ", max_bytes_, " bytes"));
    }
    hash_.Update(bytes);
    size_ += bytes.size();
    while (!bytes.empty()) {
      ssize_t count = write(fd_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return ErrnoStatus(errno, absl::StrCat("write ", temporary_.string()));
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Commit() override {
    std::string found = hash_.FinishHex();
    if (found != digest_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ", size_, " bytes have the digest ", found, ", not ", digest_));
    }
    if (fsync(fd_.get()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("sync ", temporary_.string()));
    }
    KMOSAIC_RETURN_IF_ERROR(MakeDirectory(target_.parent_path()));
    if (rename(temporary_.c_str(), target_.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("rename to ", target_.string()));
    }
    committed_ = true;
    KMOSAIC_RETURN_IF_ERROR(SyncDirectory(target_.parent_path()));
    return size_;
  }

 private:
  const std::string digest_;
  const fs::path temporary_;
  const fs::path target_;
  const Descriptor fd_;
  const uint64_t max_bytes_;
  Sha256 hash_;
  uint64_t size_ = 0;
  bool committed_ = false;
};

}  // namespace

BlobFiles::BlobFiles(std::string directory, uint64_t max_blob_bytes)
    : directory_(std::move(directory)), max_blob_bytes_(max_blob_bytes) {}

absl::StatusOr<std::unique_ptr<BlobFiles>> BlobFiles::Open(const std::string& directory,
                                                           uint64_t max_blob_bytes) {
  fs::path incoming = fs::path(directory) / "incoming";
  std::error_code error;
  fs::remove_all(incoming, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("empty ", incoming.string()));
  KMOSAIC_RETURN_IF_ERROR(MakeDirectory(incoming));
  return std::unique_ptr<BlobFiles>(new BlobFiles(directory, max_blob_bytes));
}

absl::StatusOr<std::unique_ptr<BlobFiles::Writer>> BlobFiles::Put(const std::string& digest) const {
  if (!IsDigest(digest)) return NotADigest();
  fs::path temporary = fs::path(directory_) / "incoming" / RandomId("blob");
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", temporary.string()));
  return std::make_unique<FileWriter>(digest, temporary, PathOf(directory_, digest), fd,
                                      max_blob_bytes_);
}

absl::Status BlobFiles::Get(const std::string& digest,
                            const std::function<bool(std::string chunk)>& take) const {
  if (!IsDigest(digest)) return NotADigest();
  fs::path path = PathOf(directory_, digest);
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat("no blob ", digest));
    return ErrnoStatus(errno, absl::StrCat("open ", path.string()));
  }
  while (true) {
    std::string chunk(kChunkBytes, '\0');
    ssize_t count = read(fd.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, absl::StrCat("read ", path.string()));
    if (count == 0) return absl::OkStatus();
    chunk.resize(static_cast<size_t>(count));
    if (!take(std::move(chunk))) return absl::CancelledError("the reader went away");
  }
}

}  // namespace kmosaic
