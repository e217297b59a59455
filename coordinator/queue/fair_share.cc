#include "coordinator/queue/fair_share.h"

#include <algorithm>

namespace kmosaic {

void FairShare::Insert(uint64_t job, const Entry& entry) {
  Band& band = bands_[entry.priority];
  band.by_time.emplace(entry.virtual_time, job);
  band.by_wait.emplace(entry.since, job);
}

void FairShare::Erase(uint64_t job, const Entry& entry) {
  Band& band = bands_[entry.priority];
  band.by_time.erase({entry.virtual_time, job});
  band.by_wait.erase({entry.since, job});
}

void FairShare::Update(uint64_t job, bool active, uint32_t priority, uint32_t weight) {
  auto [found, added] = entries_.try_emplace(job);
  Entry& entry = found->second;
  if (added) {
    entry.priority = std::min(priority, kPriorityBands - 1);
    entry.weight = std::max(weight, uint32_t{1});
  }
  if (entry.active == active) return;
  entry.active = active;
  if (active) {
    entry.virtual_time = std::max(entry.virtual_time, bands_[entry.priority].virtual_time);
    entry.since = grants_;
    Insert(job, entry);
  } else {
    Erase(job, entry);
  }
}

void FairShare::Remove(uint64_t job) {
  auto found = entries_.find(job);
  if (found == entries_.end()) return;
  if (found->second.active) Erase(job, found->second);
  entries_.erase(found);
}

std::optional<uint64_t> FairShare::Pick() const {
  std::optional<uint64_t> best;
  uint64_t best_band = 0;
  // From below, so that among jobs of one effective band the one that rose furthest, and
  // so waited longest, is served.
  for (uint32_t priority = 0; priority < kPriorityBands; ++priority) {
    const Band& band = bands_[priority];
    if (band.by_time.empty()) continue;
    const auto& [since, oldest] = *band.by_wait.begin();
    uint64_t risen = ageing_grants_ == 0 ? 0 : (grants_ - since) / ageing_grants_;
    uint64_t effective = std::min<uint64_t>(priority + risen, kPriorityBands - 1);
    uint64_t job = effective > priority ? oldest : band.by_time.begin()->second;
    if (!best.has_value() || effective > best_band) {
      best = job;
      best_band = effective;
    }
  }
  return best;
}

void FairShare::Charge(uint64_t job) {
  auto found = entries_.find(job);
  if (found == entries_.end() || !found->second.active) return;
  Entry& entry = found->second;
  Band& band = bands_[entry.priority];
  band.virtual_time = std::max(band.virtual_time, entry.virtual_time);
  // Moved inside the sets, without giving their memory back in between.
  auto by_time = band.by_time.extract({entry.virtual_time, job});
  auto by_wait = band.by_wait.extract({entry.since, job});
  entry.virtual_time += 1.0 / entry.weight;
  ++grants_;
  entry.since = grants_;
  by_time.value().first = entry.virtual_time;
  by_wait.value().first = entry.since;
  band.by_time.insert(std::move(by_time));
  band.by_wait.insert(std::move(by_wait));
}

}  // namespace kmosaic
