// A number of permits, and a queue for them.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_SLOTS_H_
#define KMOSAIC_GPU_WORKER_COMPILE_SLOTS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kmosaic {

// Thread-safe. Must outlive its permits.
class Slots {
 public:
  explicit Slots(uint32_t total) : total_(total) {}

  // Gives its slot back at its end. Move-only.
  class Permit {
   public:
    Permit() = default;
    explicit Permit(Slots* slots) : slots_(slots) {}
    Permit(Permit&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      Release();
      slots_ = std::exchange(other.slots_, nullptr);
      return *this;
    }
    ~Permit() { Release(); }

   private:
    void Release() {
      if (slots_ != nullptr) slots_->Release();
      slots_ = nullptr;
    }
    Slots* slots_ = nullptr;
  };

  // Waits for a slot; CANCELLED once `cancelled` says so (asked ten times a second).
  absl::StatusOr<Permit> Acquire(const std::function<bool()>& cancelled) {
    std::unique_lock lock(mutex_);
    while (used_ >= total_) {
      if (cancelled()) return absl::CancelledError("cancelled while waiting for a slot");
      freed_.wait_for(lock, std::chrono::milliseconds(100));
    }
    ++used_;
    return Permit(this);
  }

  uint32_t total() const { return total_; }
  uint32_t used() const {
    std::lock_guard lock(mutex_);
    return used_;
  }

 private:
  void Release() {
    {
      std::lock_guard lock(mutex_);
      --used_;
    }
    freed_.notify_one();
  }

  const uint32_t total_;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  uint32_t used_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_SLOTS_H_
