// What a program printed, within a bound.
#ifndef KMOSAIC_GPU_WORKER_SANDBOX_OUTPUT_BUFFER_H_
#define KMOSAIC_GPU_WORKER_SANDBOX_OUTPUT_BUFFER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kmosaic {

// Keeps the first and the last bytes of a stream and counts those between. Not
// thread-safe.
class OutputBuffer {
 public:
  OutputBuffer(size_t head_bytes, size_t tail_bytes)
      : head_limit_(head_bytes), tail_limit_(tail_bytes) {}

  void Append(std::string_view bytes);

  // Reads what a non-blocking descriptor has, at most `budget_bytes`. True when its end
  // was reached.
  absl::StatusOr<bool> Drain(int fd, size_t budget_bytes = 1 << 20);

  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t dropped_bytes() const { return total_bytes_ - head_.size() - tail_.size(); }

  // Head, a line that says how many bytes are missing (if any), tail; valid UTF-8.
  std::string Text() const;

 private:
  size_t head_limit_;
  size_t tail_limit_;
  std::string head_;
  // The oldest bytes are dropped from its front, lazily.
  std::string tail_;
  uint64_t total_bytes_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SANDBOX_OUTPUT_BUFFER_H_
