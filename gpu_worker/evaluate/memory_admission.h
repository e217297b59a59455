// Who may use how much memory at a time.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_MEMORY_ADMISSION_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_MEMORY_ADMISSION_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/statusor.h"

namespace kmosaic {

// Admits evaluations by their own estimates, in the order in which they came, so that a
// large one gets its turn. One that wants more than there is at all is admitted alone.
// Thread-safe. Must outlive its permits.
class MemoryAdmission {
 public:
  explicit MemoryAdmission(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // Gives its bytes back at its end. Move-only.
  class Permit {
   public:
    Permit() = default;
    Permit(MemoryAdmission* from, uint64_t bytes) : from_(from), bytes_(bytes) {}
    Permit(Permit&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), bytes_(other.bytes_) {}
    Permit& operator=(Permit&& other) noexcept {
      Release();
      from_ = std::exchange(other.from_, nullptr);
      bytes_ = other.bytes_;
      return *this;
    }
    ~Permit() { Release(); }

   private:
    void Release() {
      if (from_ != nullptr) from_->Release(bytes_);
      from_ = nullptr;
    }
    MemoryAdmission* from_ = nullptr;
    uint64_t bytes_ = 0;
  };

  // Waits; CANCELLED once `cancelled` says so (asked ten times a second).
  absl::StatusOr<Permit> Acquire(uint64_t bytes, const std::function<bool()>& cancelled);

  uint64_t used_bytes() const;
  uint64_t budget_bytes() const { return budget_bytes_; }

 private:
  void Release(uint64_t bytes);

  const uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t used_bytes_ = 0;
  // Who waits, in order.
  uint64_t next_ticket_ = 0;
  std::set<uint64_t> waiting_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_MEMORY_ADMISSION_H_
