#include "gpu_worker/evaluate/memory_admission.h"

#include <algorithm>
#include <chrono>

namespace kmosaic {

absl::StatusOr<MemoryAdmission::Permit> MemoryAdmission::Acquire(
    uint64_t bytes, const std::function<bool()>& cancelled) {
  bytes = std::min(bytes, budget_bytes_);
  std::unique_lock lock(mutex_);
  uint64_t ticket = next_ticket_++;
  waiting_.insert(ticket);
  while (*waiting_.begin() != ticket || used_bytes_ + bytes > budget_bytes_) {
    if (cancelled()) {
      waiting_.erase(ticket);
      changed_.notify_all();
      return absl::CancelledError("cancelled while waiting for memory");
    }
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
  waiting_.erase(ticket);
  used_bytes_ += bytes;
  changed_.notify_all();
  return Permit(this, bytes);
}

uint64_t MemoryAdmission::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

void MemoryAdmission::Release(uint64_t bytes) {
  {
    std::lock_guard lock(mutex_);
    used_bytes_ -= bytes;
  }
  changed_.notify_all();
}

}  // namespace kmosaic
