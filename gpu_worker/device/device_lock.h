// A reader-writer lock on a device, between the processes of one host too.
#ifndef KMOSAIC_GPU_WORKER_DEVICE_DEVICE_LOCK_H_
#define KMOSAIC_GPU_WORKER_DEVICE_DEVICE_LOCK_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

// flock on a file: ends with its holder, whatever happens to it. Move-only.
class DeviceLock {
 public:
  enum class Mode { kShared, kExclusive };

  // Locks nothing.
  DeviceLock() = default;

  // Makes the files (`path`, and `path`.gate) when they are not there. Who waits for
  // kExclusive holds the gate, so that those who come later for kShared wait behind it. Asks
  // `cancelled` while it waits: CANCELLED; another status names the file and the cause.
  static absl::StatusOr<DeviceLock> Acquire(const std::string& path, Mode mode,
                                            const std::function<bool()>& cancelled);

  bool held() const { return file_.valid(); }

 private:
  explicit DeviceLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_DEVICE_DEVICE_LOCK_H_
