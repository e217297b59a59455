#include "gpu_worker/emulation/runtime/access_monitor.h"

#include <algorithm>
#include <cstring>

namespace kmosaic::emulation {

void AccessMonitor::BeginGrid(std::uint64_t blocks, unsigned threads_per_block,
                              const std::string& kernel) {
  ++grid_serial_;
  kernel_ = kernel;
  accesses_ = 0;
  // Memory of former launches may be gone.
  shadows_.clear();
  granules_ = 0;
  last_start_ = nullptr;
  last_shadow_ = nullptr;
  pending_.clear();
  for (Loaded& loaded : loaded_) loaded.bytes = 0;
  block_clock_.assign(blocks, 0);
  block_fenced_.assign(blocks, 0);
  thread_clock_.assign(threads_per_block, 0);
}

void AccessMonitor::BeginBlock() {
  // Before shared memory gets a new content.
  Settle();
  ++block_serial_;
  std::fill(thread_clock_.begin(), thread_clock_.end(), 0);
}

void AccessMonitor::Settle() {
  Resolve();
  ResolveLoads(loader_);
  for (Loaded& loaded : loaded_) loaded.bytes = 0;
}

void AccessMonitor::EndGrid() {
  Settle();
  shadows_.clear();
  last_start_ = nullptr;
  last_shadow_ = nullptr;
}

void AccessMonitor::Synchronise(const Actor& actor, bool is_fence) {
  Resolve();
  ResolveLoads(actor);
  ++clock_;
  block_clock_[actor.block] = clock_;
  thread_clock_[actor.thread] = clock_;
  if (is_fence) block_fenced_[actor.block] = 1;
}

AccessMonitor::Shadow* AccessMonitor::Find(const Place& place) {
  if (place.start == last_start_) return last_shadow_;
  last_start_ = place.start;
  auto [found, fresh] = shadows_.try_emplace(place.start);
  Shadow& shadow = found->second;
  if (fresh || shadow.bytes != place.bytes) {
    const std::size_t count = (place.bytes + kGranule - 1) / kGranule;
    granules_ += count - shadow.granules.size();
    shadow.bytes = place.bytes;
    if (granules_ > kMaxGranules) {
      granules_ -= count;
      shadow.granules.clear();
    } else {
      shadow.granules.assign(count, Granule{});
    }
  }
  last_shadow_ = &shadow;
  return last_shadow_;
}

bool AccessMonitor::Ordered(const Trace& before, const Actor& now) const {
  const Actor& then = before.actor;
  if (then.block != now.block) {
    if (block_fenced_[then.block] != 0 || block_fenced_[now.block] != 0) return true;
    return block_clock_[then.block] > before.clock && block_clock_[now.block] > before.clock;
  }
  if (then.thread == now.thread || then.barriers != now.barriers) return true;
  if (then.thread / 32 == now.thread / 32 && then.warp_operations != now.warp_operations) {
    return true;
  }
  return thread_clock_[then.thread] > before.clock && thread_clock_[now.thread] > before.clock;
}

std::string AccessMonitor::Words(const Place& place, std::size_t granule, const Trace& before,
                                 const char* what, const char* now) const {
  return "byte offset " + std::to_string(granule * kGranule) + " of " + *place.name + " of " +
         std::to_string(place.bytes) + " bytes is " + what + " by thread " +
         std::to_string(before.actor.thread) + " of block " + std::to_string(before.actor.block) +
         " and " + now + " by this one, with no barrier or atomic between that orders the two";
}

void AccessMonitor::ReportOnce(const char* kind, const Actor& actor, const std::string& detail) {
  if (reported_.insert(std::string(kind) + "/" + kernel_).second) report_(kind, actor, detail);
}

void AccessMonitor::Resolve() {
  for (const Pending& pending : pending_) {
    if (std::memcmp(pending.before.data(), pending.address, pending.bytes) != 0) {
      ReportOnce("race", pending.actor, pending.detail);
    }
  }
  pending_.clear();
}

void AccessMonitor::ResolveLoads(const Actor& next) {
  const bool same = loader_.block == next.block && loader_.thread == next.thread &&
                    loader_.barriers == next.barriers &&
                    loader_.warp_operations == next.warp_operations;
  for (Loaded& loaded : loaded_) {
    if (loaded.bytes == 0) continue;
    if (std::memcmp(loaded.before.data(), loaded.address, loaded.bytes) != 0) {
      hidden_store_(loaded.place, loaded.bytes);
      Look(loaded.place, loaded.address, loaded.bytes, Kind::kStore, loader_, true);
      std::memcpy(loaded.before.data(), loaded.address, loaded.bytes);
    }
    if (!same) loaded.bytes = 0;
  }
  loader_ = next;
}

void AccessMonitor::Access(const Place& place, const char* address, std::size_t bytes, Kind kind,
                           const Actor& actor) {
  Resolve();
  ResolveLoads(actor);
  if (++accesses_ > kMaxAccesses) return;
  Look(place, address, bytes, kind, actor, false);
  if (kind == Kind::kLoad) {
    if (bytes <= loaded_[0].before.size()) {
      const auto same = [&](const Loaded& other) { return other.address == address; };
      auto found = std::find_if(loaded_.begin(), loaded_.end(), same);
      if (found == loaded_.end()) found = loaded_.begin() + next_loaded_++ % kRecentLoads;
      Loaded& loaded = *found;
      loaded.place = place;
      loaded.address = address;
      loaded.bytes = std::min(bytes, static_cast<std::size_t>(place.start + place.bytes - address));
      std::memcpy(loaded.before.data(), address, loaded.bytes);
    }
  } else {
    // This one is announced.
    for (Loaded& loaded : loaded_) {
      if (address < loaded.address + loaded.bytes && loaded.address < address + bytes) {
        loaded.bytes = 0;
      }
    }
  }
  if (kind == Kind::kAtomic) Synchronise(actor, false);
}

void AccessMonitor::Look(const Place& place, const char* address, std::size_t bytes, Kind kind,
                         const Actor& actor, bool changed) {
  Shadow* shadow = Find(place);
  if (shadow->granules.empty()) return;
  const std::uint64_t serial = place.is_shared ? block_serial_ : grid_serial_;
  const std::size_t begin = static_cast<std::size_t>(address - place.start);
  const std::size_t end = std::min(begin + bytes, place.bytes);
  for (std::size_t g = begin / kGranule; g * kGranule < end; ++g) {
    const std::size_t first = std::max(begin, g * kGranule) - g * kGranule;
    const std::size_t last = std::min(end, (g + 1) * kGranule) - g * kGranule;
    const auto mask = static_cast<std::uint8_t>((1u << last) - (1u << first));
    Granule& granule = shadow->granules[g];
    const bool stored = granule.store.serial == serial;
    if (!stored) granule.written = 0;
    if (place.is_shared && kind != Kind::kStore && (mask & ~granule.written) != 0) {
      ReportOnce("uninitialised_shared", actor,
                 "byte offset " + std::to_string(begin) + " of " + *place.name + " of " +
                     std::to_string(place.bytes) +
                     " bytes is read before any thread of the block wrote it");
    }
    const bool conflicts_with_store = stored && !granule.store.atomic &&
                                      (granule.store.bytes & mask) != 0 &&
                                      !Ordered(granule.store, actor);
    const bool same_warp = conflicts_with_store && SameWarp(granule.store, actor);
    if (conflicts_with_store && kind != Kind::kStore && !same_warp) {
      ReportOnce("race", actor,
                 Words(place, g, granule.store, "written",
                       kind == Kind::kLoad ? "read" : "changed by an atomic"));
    }
    if (kind == Kind::kStore) {
      const Trace* before = conflicts_with_store ? &granule.store : nullptr;
      const char* what = "written";
      if (before == nullptr && granule.load.serial == serial && (granule.load.bytes & mask) != 0 &&
          !SameWarp(granule.load, actor) && !Ordered(granule.load, actor)) {
        before = &granule.load;
        what = "read";
      }
      if (before != nullptr && changed) {
        ReportOnce("race", actor, Words(place, g, *before, what, "written"));
      } else if (before != nullptr) {
        Pending pending;
        pending.address = place.start + g * kGranule + first;
        pending.bytes = last - first;
        std::memcpy(pending.before.data(), pending.address, pending.bytes);
        pending.actor = actor;
        pending.detail = Words(place, g, *before, what, "written");
        pending_.push_back(std::move(pending));
      }
    }
    if (kind == Kind::kLoad) {
      granule.load = {serial, clock_, actor, mask, false};
    } else {
      granule.store = {serial, clock_, actor, mask, kind == Kind::kAtomic};
      granule.written |= mask;
    }
  }
}

}  // namespace kmosaic::emulation
