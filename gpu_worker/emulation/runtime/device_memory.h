// The emulated device's memory: every allocation ends at a guard page, so the first byte past its
// end faults; the bytes before its start are checked for stray writes.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_DEVICE_MEMORY_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace kmosaic::emulation {

// One mapping: [guard page][slack][content, rounded up to 16 bytes][guard page].
class GuardedRegion {
 public:
  GuardedRegion() = default;
  ~GuardedRegion();
  GuardedRegion(GuardedRegion&& other) noexcept;
  GuardedRegion& operator=(GuardedRegion&& other) noexcept;

  // Content of `bytes` bytes, all `poison`. False when the system gives no memory.
  bool Map(std::size_t bytes, unsigned char poison);
  // Makes any access fault from now on; keeps the addresses taken.
  void Revoke();

  char* start() const { return start_; }
  std::size_t bytes() const { return bytes_; }
  bool Holds(const void* address) const;         // content
  bool MappingHolds(const void* address) const;  // content, slack or guards
  void Fill(unsigned char poison);
  // Offset (relative to start) of a byte outside the content that was overwritten; repairs it.
  std::optional<std::ptrdiff_t> TakeStrayWrite();

 private:
  char* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  char* start_ = nullptr;
  std::size_t bytes_ = 0;
};

// Not synchronised.
class DeviceMemory {
 public:
  // Returns null when the system gives no memory.
  void* Allocate(std::size_t bytes, unsigned char poison);
  // The freed range stays unmapped for a while, so that a use after it is noticed.
  bool Free(void* address);
  std::size_t allocated_bytes() const { return allocated_bytes_; }

  // The live allocation whose content holds `address`, or null.
  const GuardedRegion* Find(const void* address) const;
  // What lies at a faulting address, in words; nullopt when it is nothing of the device's.
  std::optional<std::string> Describe(const void* address) const;
  // A text per allocation whose surroundings were written to since the last call.
  std::optional<std::string> TakeStrayWrite();

 private:
  static constexpr std::size_t kMaxRevoked = 256;

  std::map<const char*, GuardedRegion> live_;  // by start
  std::deque<GuardedRegion> revoked_;
  std::size_t allocated_bytes_ = 0;
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_DEVICE_MEMORY_H_
