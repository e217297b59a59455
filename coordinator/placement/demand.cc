#include "coordinator/placement/demand.h"

#include <algorithm>
#include <cmath>

namespace kmosaic {
namespace {

constexpr double kTimeConstantSeconds = 120;
constexpr double kDrainSeconds = 60;
// Until a slot has come back: about what a verification takes.
constexpr double kPriorServiceSeconds = 10;
// Less than this share of a slot is no demand.
constexpr double kNegligibleSlots = 0.05;

}  // namespace

double Demand::Fading::At(absl::Duration now) const {
  return value * std::exp(-absl::ToDoubleSeconds(now - at) / kTimeConstantSeconds);
}

void Demand::Fading::Add(double amount, absl::Duration now) {
  value = At(now) + amount;
  at = now;
}

void Demand::Granted(v1::Role role, absl::Duration now) { roles_[role].grants.Add(1, now); }

void Demand::Released(v1::Role role, absl::Duration held, absl::Duration now) {
  roles_[role].released.Add(1, now);
  roles_[role].held_seconds.Add(absl::ToDoubleSeconds(held), now);
}

void Demand::SetSlotsPerWorker(v1::Role role, double slots) {
  if (slots > 0) roles_[role].slots_per_worker = slots;
}

uint64_t Demand::WantedWorkers(v1::Role role, uint64_t waiting, absl::Duration now) const {
  auto found = roles_.find(role);
  const Role state = found == roles_.end() ? Role{} : found->second;
  // The prior counts as one observation.
  double service =
      (state.held_seconds.At(now) + kPriorServiceSeconds) / (state.released.At(now) + 1);
  // A fading sum of a steady rate r approaches r times the time constant; early on only the
  // part that has passed.
  double elapsed = std::max(1.0, absl::ToDoubleSeconds(now - started_));
  double window = kTimeConstantSeconds * (1 - std::exp(-elapsed / kTimeConstantSeconds));
  double rate = state.grants.At(now) / window;
  double slots = rate * service;
  if (slots < kNegligibleSlots) slots = 0;
  slots += static_cast<double>(waiting) * service / kDrainSeconds;
  return static_cast<uint64_t>(std::ceil(slots / state.slots_per_worker));
}

}  // namespace kmosaic
