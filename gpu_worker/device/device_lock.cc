#include "gpu_worker/device/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {

absl::StatusOr<DeviceLock> DeviceLock::Acquire(const std::string& path, Mode mode,
                                               const std::function<bool()>& cancelled) {
  // Other users' workers lock the same file.
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("device lock ", path));
  int operation = (mode == Mode::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  while (flock(file.get(), operation) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoStatus(errno, absl::StrCat("device lock ", path));
    }
    if (cancelled()) return absl::CancelledError("cancelled while waiting for the device");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return DeviceLock(std::move(file));
}

}  // namespace kmosaic
