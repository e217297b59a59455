#include "coordinator/queue/fair_share.h"

#include <algorithm>

namespace kmosaic {

void FairShare::Insert(uint64_t job, const Entry& entry) {
  Band& band = bands_[entry.priority];
  band.by_time.emplace(entry.virtual_time, job);
  band.by_wait.emplace(entry.since, job);
  band.weight += entry.weight;
}

void FairShare::Erase(uint64_t job, const Entry& entry) {
  Band& band = bands_[entry.priority];
  band.by_time.erase({entry.virtual_time, job});
  band.by_wait.erase({entry.since, job});
  band.weight -= entry.weight;
}

void FairShare::Update(uint64_t job, bool active, uint32_t priority, uint64_t weight) {
  priority = std::min(priority, kPriorityBands - 1);
  weight = std::max(weight, uint64_t{1});
  Entry& entry = entries_[job];
  if (entry.active == active && entry.priority == priority && entry.weight == weight) return;
  if (entry.active) Erase(job, entry);
  bool begins = active && (!entry.active || entry.priority != priority);
  entry.active = active;
  entry.priority = priority;
  entry.weight = weight;
  if (begins) {
    entry.virtual_time = std::max(entry.virtual_time, bands_[priority].virtual_time);
    entry.since = grants_;
  }
  if (active) Insert(job, entry);
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
  entry.virtual_time += 1.0 / static_cast<double>(entry.weight);
  ++grants_;
  entry.since = grants_;
  by_time.value().first = entry.virtual_time;
  by_wait.value().first = entry.since;
  band.by_time.insert(std::move(by_time));
  band.by_wait.insert(std::move(by_wait));
}

void FairShare::Refund(uint64_t job, uint64_t grants) {
  auto found = entries_.find(job);
  if (found == entries_.end() || grants == 0) return;
  Entry& entry = found->second;
  if (entry.active) Erase(job, entry);
  entry.virtual_time -= static_cast<double>(grants) / static_cast<double>(entry.weight);
  if (entry.active) Insert(job, entry);
}

FairShare::Top FairShare::HighestBand() const {
  for (uint32_t priority = kPriorityBands; priority-- > 0;) {
    if (bands_[priority].weight > 0) return {priority, bands_[priority].weight};
  }
  return {};
}

}  // namespace kmosaic
