#include "gpu_worker/sandbox/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "common/base/status.h"

namespace kmosaic {

absl::StatusOr<UniqueFd> SealedMemfd(const std::string& name, std::string_view bytes) {
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus(errno, "memfd_create " + name);
  for (size_t done = 0; done < bytes.size();) {
    ssize_t written =
        pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write memfd " + name);
    done += static_cast<size_t>(written);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
    return ErrnoStatus(errno, "seal memfd " + name);
  }
  return fd;
}

absl::StatusOr<UniqueFd> WritableMemfd(const std::string& name, uint64_t size_bytes) {
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus(errno, "memfd_create " + name);
  if (ftruncate(fd.get(), static_cast<off_t>(size_bytes)) < 0) {
    return ErrnoStatus(errno, "size memfd " + name);
  }
  // The other side may write it, not change its size.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
    return ErrnoStatus(errno, "seal memfd " + name);
  }
  return fd;
}

}  // namespace kmosaic
