#include "gpu_worker/sandbox/output_buffer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

void OutputBuffer::Append(std::string_view bytes) {
  total_bytes_ += bytes.size();
  size_t to_head = std::min(bytes.size(), head_limit_ - head_.size());
  head_.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  if (bytes.size() > tail_limit_) bytes.remove_prefix(bytes.size() - tail_limit_);
  if (tail_.size() + bytes.size() > tail_limit_) {
    tail_.erase(0, tail_.size() + bytes.size() - tail_limit_);
  }
  tail_.append(bytes);
}

absl::StatusOr<bool> OutputBuffer::Drain(int fd, size_t budget_bytes) {
  char buffer[16384];
  while (budget_bytes > 0) {
    ssize_t count = read(fd, buffer, std::min(budget_bytes, sizeof buffer));
    if (count == 0) return true;
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      return ErrnoStatus(errno, "read a program's output");
    }
    Append(std::string_view(buffer, static_cast<size_t>(count)));
    budget_bytes -= static_cast<size_t>(count);
  }
  return false;
}

std::string OutputBuffer::Text() const {
  if (dropped_bytes() == 0) return ToValidUtf8(head_ + tail_);
  // Begin the tail on a character boundary.
  size_t start = 0;
  while (start < tail_.size() && start < 3 &&
         (static_cast<unsigned char>(tail_[start]) & 0xC0) == 0x80) {
    ++start;
  }
  // A last character that was cut becomes one replacement character: leave it out.
  std::string head = ToValidUtf8(head_);
  if (absl::EndsWith(head, kReplacement)) head.resize(head.size() - kReplacement.size());
  return absl::StrCat(head, "\n[... ", dropped_bytes(), " bytes left out ...]\n",
                      ToValidUtf8(std::string_view(tail_).substr(start)));
}

}  // namespace kmosaic
