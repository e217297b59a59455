// Content-addressed files: DIRECTORY/ab/cdef... for the SHA-256 abcdef....
#ifndef KMOSAIC_COORDINATOR_SERVICE_BLOB_FILES_H_
#define KMOSAIC_COORDINATOR_SERVICE_BLOB_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kmosaic {

// Thread-safe; one process owns the directory. A blob is there whole or not at all: it is
// written under a temporary name, synced, renamed, and the directory is synced.
class BlobFiles {
 public:
  // Makes the directory; drops what earlier processes left half-written.
  static absl::StatusOr<std::unique_ptr<BlobFiles>> Open(const std::string& directory,
                                                         uint64_t max_blob_bytes = 256ull << 20);

  // One blob on its way in. Dropped unless committed. One thread at a time.
  class Writer {
   public:
    virtual ~Writer() = default;
    // RESOURCE_EXHAUSTED past the largest size.
    virtual absl::Status Append(std::string_view bytes) = 0;
    // INVALID_ARGUMENT when the bytes do not have the digest. The size in bytes; durable.
    virtual absl::StatusOr<uint64_t> Commit() = 0;
  };

  // INVALID_ARGUMENT for what is not a lower-case hex SHA-256.
  absl::StatusOr<std::unique_ptr<Writer>> Put(const std::string& digest) const;

  // Hands the blob over in chunks until `take` returns false (CANCELLED then). NOT_FOUND
  // when there is no such blob.
  absl::Status Get(const std::string& digest,
                   const std::function<bool(std::string chunk)>& take) const;

 private:
  BlobFiles(std::string directory, uint64_t max_blob_bytes);

  const std::string directory_;
  const uint64_t max_blob_bytes_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_SERVICE_BLOB_FILES_H_
