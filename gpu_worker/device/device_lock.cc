#include "gpu_worker/device/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

// Short beside the work that is waited for, and cheap for a few dozen who wait.
constexpr std::chrono::milliseconds kPause(5);

absl::StatusOr<UniqueFd> Wait(const std::string& path, int operation,
                              const std::function<bool()>& cancelled) {
  // Other users' workers lock the same file.
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("device lock ", path));
  while (flock(file.get(), operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoStatus(errno, absl::StrCat("device lock ", path));
    }
    if (cancelled()) return absl::CancelledError("cancelled while waiting for the device");
    std::this_thread::sleep_for(kPause);
  }
  return file;
}

}  // namespace

absl::StatusOr<DeviceLock> DeviceLock::Acquire(const std::string& path, Mode mode,
                                               const std::function<bool()>& cancelled) {
  KMOSAIC_ASSIGN_OR_RETURN(UniqueFd gate, Wait(path + ".gate", LOCK_EX, cancelled));
  KMOSAIC_ASSIGN_OR_RETURN(UniqueFd file,
                           Wait(path, mode == Mode::kShared ? LOCK_SH : LOCK_EX, cancelled));
  return DeviceLock(std::move(file));
}

}  // namespace kmosaic
