// Owner of a file descriptor.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_UNIQUE_FD_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace kmosaic {

// Closes the descriptor in its destructor; -1 is none. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_UNIQUE_FD_H_
