#include "coordinator/store/disk_space.h"

#include <sys/statvfs.h>

#include <cerrno>

#include "common/base/status.h"

namespace kmosaic {

DiskState JudgeDisk(uint64_t free_bytes, const DiskMarks& marks) {
  if (free_bytes < marks.read_only_bytes) return DiskState::kReadOnly;
  if (free_bytes < marks.submit_bytes) return DiskState::kNoSubmits;
  return DiskState::kOk;
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs volume = {};
  if (statvfs(path.c_str(), &volume) != 0) return ErrnoStatus(errno, "statvfs " + path);
  return static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
}

}  // namespace kmosaic
