#include "gpu_worker/emulation/runtime/device_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace kmosaic::emulation {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 16;  // of the largest vector type's loads
constexpr unsigned char kCanary = 0xc7;

std::size_t RoundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

GuardedRegion::~GuardedRegion() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

GuardedRegion::GuardedRegion(GuardedRegion&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      start_(other.start_),
      bytes_(other.bytes_) {}

GuardedRegion& GuardedRegion::operator=(GuardedRegion&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool GuardedRegion::Map(std::size_t bytes, unsigned char poison) {
  if (bytes > (std::size_t{1} << 46)) return false;
  const std::size_t content = RoundUp(bytes, kAlignment);
  const std::size_t pages = content == 0 ? 0 : RoundUp(content, kPage);
  const std::size_t total = pages + 2 * kPage;
  void* memory =
      mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  char* first = static_cast<char*>(memory) + kPage;
  if (pages > 0 && mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, total);
    return false;
  }
  mapping_ = static_cast<char*>(memory);
  mapping_bytes_ = total;
  start_ = first + pages - content;
  bytes_ = bytes;
  std::memset(first, kCanary, pages - content);
  std::memset(start_, poison, bytes);
  std::memset(start_ + bytes, kCanary, content - bytes);
  return true;
}

void GuardedRegion::Revoke() {
  // A fresh mapping in place gives the pages back and refuses every access.
  mmap(mapping_, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
}

bool GuardedRegion::Holds(const void* address) const {
  const char* at = static_cast<const char*>(address);
  return at >= start_ && at < start_ + bytes_;
}

bool GuardedRegion::MappingHolds(const void* address) const {
  const char* at = static_cast<const char*>(address);
  return at >= mapping_ && at < mapping_ + mapping_bytes_;
}

void GuardedRegion::Fill(unsigned char poison) { std::memset(start_, poison, bytes_); }

std::optional<std::ptrdiff_t> GuardedRegion::TakeStrayWrite() {
  std::optional<std::ptrdiff_t> found;
  const auto check = [&](char* from, char* to) {
    for (char* at = from; at < to; ++at) {
      if (static_cast<unsigned char>(*at) == kCanary) continue;
      if (!found) found = at - start_;
      *at = static_cast<char>(kCanary);
    }
  };
  check(start_ + bytes_, start_ + RoundUp(bytes_, kAlignment));
  check(mapping_ + kPage, start_);
  return found;
}

void* DeviceMemory::Allocate(std::size_t bytes, unsigned char poison) {
  GuardedRegion region;
  if (!region.Map(bytes, poison)) return nullptr;
  char* start = region.start();
  live_.emplace(start, std::move(region));
  allocated_bytes_ += bytes;
  return start;
}

bool DeviceMemory::Free(void* address) {
  const auto it = live_.find(static_cast<const char*>(address));
  if (it == live_.end()) return false;
  allocated_bytes_ -= it->second.bytes();
  it->second.Revoke();
  revoked_.push_back(std::move(it->second));
  live_.erase(it);
  if (revoked_.size() > kMaxRevoked) revoked_.pop_front();
  return true;
}

const GuardedRegion* DeviceMemory::Find(const void* address) const {
  auto it = live_.upper_bound(static_cast<const char*>(address));
  if (it == live_.begin()) return nullptr;
  --it;
  return it->second.Holds(address) ? &it->second : nullptr;
}

std::optional<std::string> DeviceMemory::Describe(const void* address) const {
  const auto describe = [&](const GuardedRegion& region, const char* what) {
    const std::ptrdiff_t offset = static_cast<const char*>(address) - region.start();
    return "byte offset " + std::to_string(offset) + " of " + what + " of " +
           std::to_string(region.bytes()) + " bytes";
  };
  // Guards of neighbours lie side by side; the allocation that ends or starts here wins. An
  // empty allocation starts inside its second guard page.
  auto it = live_.upper_bound(static_cast<const char*>(address));
  if (it != live_.begin() && std::prev(it)->second.MappingHolds(address)) {
    return describe(std::prev(it)->second, "an allocation");
  }
  if (it != live_.end() && it->second.MappingHolds(address)) {
    return describe(it->second, "an allocation");
  }
  for (const GuardedRegion& region : revoked_) {
    if (region.MappingHolds(address)) return describe(region, "a freed allocation");
  }
  return std::nullopt;
}

std::optional<std::string> DeviceMemory::TakeStrayWrite() {
  std::optional<std::string> found;
  for (auto& [start, region] : live_) {
    const auto offset = region.TakeStrayWrite();
    if (offset && !found) {
      found = "a write at byte offset " + std::to_string(*offset) + " of an allocation of " +
              std::to_string(region.bytes()) + " bytes";
    }
  }
  return found;
}

}  // namespace kmosaic::emulation
