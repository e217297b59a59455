// Room left for the store. RocksDB ends the process when a write meets a full disk, so
// the queue has to stop before.
#ifndef KMOSAIC_COORDINATOR_STORE_DISK_SPACE_H_
#define KMOSAIC_COORDINATOR_STORE_DISK_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace kmosaic {

enum class DiskState {
  kOk,
  // New jobs are refused; running ones go on.
  kNoSubmits,
  // Nothing is written.
  kReadOnly,
};

struct DiskMarks {
  // Below: kNoSubmits.
  uint64_t submit_bytes = 1024ull << 20;
  // Below: kReadOnly.
  uint64_t read_only_bytes = 256ull << 20;
};

DiskState JudgeDisk(uint64_t free_bytes, const DiskMarks& marks);

// Bytes that an ordinary user may still write on the volume of `path`.
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_DISK_SPACE_H_
