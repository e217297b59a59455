#include "gpu_worker/sandbox/kernel_file.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "gpu_worker/sandbox/unique_fd.h"

namespace kmosaic {

std::string ReadKernelFile(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part;
  while (file.valid()) {
    ssize_t count = read(file.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return "";
    if (count == 0) break;
    text.append(part.data(), static_cast<size_t>(count));
  }
  return text;
}

}  // namespace kmosaic
