#include "coordinator/placement/placement_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

constexpr v1::Role kRoles[] = {v1::ROLE_COMPILE, v1::ROLE_VERIFY, v1::ROLE_BENCHMARK};

}  // namespace

PlacementTable::PlacementTable(Options options, absl::Duration now)
    : options_(std::move(options)), started_(now), drained_(options_.drained), demand_(now) {}

PlacementTable::Orders PlacementTable::Sync(const v1::WorkerSyncRequest& request, absl::Time wall,
                                            absl::Duration now) {
  WorkerRecord& worker = workers_[request.worker()];
  worker.introduced = worker.said.incarnation() == request.incarnation();
  if (!worker.introduced) {
    FreeSlotsWhere([&](const GrantedSlot& slot) { return slot.worker == request.worker(); }, now);
    auto order = drained_.find(request.worker());
    worker.drain_ordered = order != drained_.end() && order->second == request.incarnation();
  }
  worker.said = request;
  worker.lost = false;
  worker.suspect = false;
  worker.last_sync = now;
  worker.last_sync_wall = wall;
  for (auto& [role, slots] : worker.slots) slots.total = 0;
  for (const v1::RoleSlots& slots : request.slots()) {
    worker.slots[slots.role()].total = slots.total();
  }
  std::erase_if(worker.slots, [](const auto& entry) {
    return entry.second.total == 0 && entry.second.used == 0;
  });
  UpdateDemand();
  Orders orders{worker.drain_ordered, worker.drain_ordered && worker.Idle(), !worker.introduced};
  Match(now);
  FailUnsatisfiable(now);
  return orders;
}

bool PlacementTable::Drain(const std::string& id, bool drain, absl::Duration now) {
  auto worker = workers_.find(id);
  if (worker == workers_.end()) return false;
  worker->second.drain_ordered = drain;
  drained_.erase(id);
  if (drain) drained_[id] = worker->second.said.incarnation();
  Match(now);
  return true;
}

std::string PlacementTable::Incarnation(const std::string& id) const {
  auto worker = workers_.find(id);
  return worker == workers_.end() ? "" : worker->second.said.incarnation();
}

void PlacementTable::Suspect(const std::string& id) {
  auto worker = workers_.find(id);
  if (worker != workers_.end()) worker->second.suspect = true;
}

void PlacementTable::Enqueue(uint64_t ticket, SlotRequest request, absl::Duration now) {
  if (absl::Status status = CheckSatisfiable(request.requirement, now);
      absl::IsFailedPrecondition(status)) {
    ++unsatisfiable_;
    outcomes_.push_back({ticket, status});
    return;
  }
  absl::Duration deadline = now + std::max(request.wait, absl::ZeroDuration());
  queue_.Add({ticket, std::move(request), now, deadline});
  Match(now);
  if (deadline > now) return;
  if (auto left = queue_.Remove(ticket)) outcomes_.push_back({ticket, Expired(*left)});
}

bool PlacementTable::Cancel(uint64_t ticket) {
  if (!queue_.Remove(ticket).has_value()) return false;
  outcomes_.push_back({ticket, absl::CancelledError("the request for a slot was withdrawn")});
  return true;
}

bool PlacementTable::Release(const std::string& id, absl::Duration now) {
  auto slot = slots_.find(id);
  if (slot == slots_.end()) return false;
  FreeSlot(slot, now);
  Match(now);
  return true;
}

size_t PlacementTable::ReleaseHolder(const std::string& holder, absl::Duration now) {
  size_t freed =
      FreeSlotsWhere([&](const GrantedSlot& slot) { return slot.holder == holder; }, now);
  if (freed > 0) Match(now);
  return freed;
}

absl::Status PlacementTable::CheckSatisfiable(const SlotRequirement& requirement,
                                              absl::Duration now) const {
  if (AnyMeets(requirement)) return absl::OkStatus();
  std::string why = WhyUnsatisfiable(workers_, requirement);
  if (InGrace(requirement, now)) {
    return absl::UnavailableError(absl::StrCat("no worker registered yet: ", why));
  }
  return absl::FailedPreconditionError(why);
}

void PlacementTable::Tick(absl::Duration now) {
  LoseSilentWorkers(now);
  std::vector<std::string> overdue;
  for (const auto& [id, slot] : slots_) {
    if (slot.expires <= now) overdue.push_back(id);
  }
  for (const std::string& id : overdue) {
    ++slots_reclaimed_;
    FreeSlot(slots_.find(id), now);
  }
  Match(now);
  for (const WaitQueue::Request& request : queue_.RemoveExpired(now)) {
    outcomes_.push_back({request.ticket, Expired(request)});
  }
  FailUnsatisfiable(now);
}

std::vector<v1::Worker> PlacementTable::Workers() const {
  std::vector<v1::Worker> workers;
  workers.reserve(workers_.size());
  for (const auto& [id, worker] : workers_) workers.push_back(worker.ToWire());
  return workers;
}

std::optional<v1::Worker> PlacementTable::FindWorker(const std::string& id) const {
  auto worker = workers_.find(id);
  if (worker == workers_.end()) return std::nullopt;
  return worker->second.ToWire();
}

PlacementFigures PlacementTable::Figures(absl::Duration now) const {
  PlacementFigures figures;
  for (const auto& [id, worker] : workers_) {
    ++figures.workers[worker.State()];
    if (worker.lost) continue;
    for (const auto& [role, slots] : worker.slots) {
      figures.roles[role].total += slots.total;
      figures.roles[role].used += slots.used;
    }
  }
  for (v1::Role role : kRoles) {
    PlacementFigures::Role& of_role = figures.roles[role];
    of_role.waiting = queue_.Waiting(role);
    of_role.wanted = demand_.WantedWorkers(role, of_role.waiting, now);
  }
  figures.workers_lost = workers_lost_;
  figures.slots_reclaimed = slots_reclaimed_;
  figures.unsatisfiable = unsatisfiable_;
  return figures;
}

absl::Duration PlacementTable::Ttl(v1::Role role) const {
  switch (role) {
    case v1::ROLE_COMPILE:
      return options_.compile_ttl;
    case v1::ROLE_BENCHMARK:
      return options_.benchmark_ttl;
    default:
      return options_.verify_ttl;
  }
}

void PlacementTable::Match(absl::Duration now) {
  for (v1::Role role : kRoles) {
    while (queue_.Waiting(role) > 0) {
      WorkerRecord* chosen = nullptr;
      auto open = [this](const SlotRequirement& requirement) {
        return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
          return entry.second.TakesWork() && entry.second.HasFree(requirement.role) &&
                 entry.second.Meets(requirement);
        });
      };
      auto visit = [&](const WaitQueue::Request& request) {
        chosen = ChooseWorker(request);
        return chosen != nullptr;
      };
      std::optional<WaitQueue::Request> request = queue_.TakeFirst(role, open, visit);
      if (!request.has_value()) break;
      Grant(*request, *chosen, now);
    }
  }
}

WorkerRecord* PlacementTable::ChooseWorker(const WaitQueue::Request& request) {
  const SlotRequirement& requirement = request.asked.requirement;
  auto load = [&](const WorkerRecord& worker) {
    const WorkerRecord::Slots& slots = worker.slots.at(requirement.role);
    return std::pair(static_cast<double>(slots.used) / slots.total, worker.last_grant);
  };
  WorkerRecord* best = nullptr;
  WorkerRecord* best_avoided = nullptr;
  bool other_fits = false;
  for (auto& [id, worker] : workers_) {
    if (!worker.TakesWork() || !worker.Meets(requirement)) continue;
    bool avoided = request.asked.avoid.count(id) > 0;
    if (!avoided) other_fits = true;
    if (!worker.HasFree(requirement.role)) continue;
    WorkerRecord*& slot = avoided ? best_avoided : best;
    if (slot == nullptr || load(worker) < load(*slot)) slot = &worker;
  }
  return other_fits ? best : best_avoided;
}

void PlacementTable::Grant(const WaitQueue::Request& request, WorkerRecord& worker,
                           absl::Duration now) {
  v1::Role role = request.asked.requirement.role;
  std::string id = absl::StrCat(options_.slot_prefix, "-", next_slot_++);
  slots_[id] = {worker.said.worker(), request.asked.holder, request.asked.group, role, now,
                now + Ttl(role)};
  ++worker.slots[role].used;
  worker.last_grant = ++grants_;
  queue_.AddHeld(role, request.asked.group, request.asked.weight);
  demand_.Granted(role, now);
  outcomes_.push_back({request.ticket, Granted{id, worker.said.worker(), worker.said.endpoint(),
                                               Ttl(role), now - request.since}});
}

void PlacementTable::FreeSlot(std::map<std::string, GrantedSlot>::iterator slot,
                              absl::Duration now) {
  const GrantedSlot& granted = slot->second;
  auto worker = workers_.find(granted.worker);
  if (worker != workers_.end()) {
    auto slots = worker->second.slots.find(granted.role);
    if (slots != worker->second.slots.end() && slots->second.used > 0) --slots->second.used;
  }
  queue_.RemoveHeld(granted.role, granted.group);
  demand_.Released(granted.role, now - granted.granted, now);
  slots_.erase(slot);
}

size_t PlacementTable::FreeSlotsWhere(const std::function<bool(const GrantedSlot&)>& which,
                                      absl::Duration now) {
  std::vector<std::string> ids;
  for (const auto& [id, slot] : slots_) {
    if (which(slot)) ids.push_back(id);
  }
  for (const std::string& id : ids) FreeSlot(slots_.find(id), now);
  return ids.size();
}

void PlacementTable::LoseSilentWorkers(absl::Duration now) {
  for (auto it = workers_.begin(); it != workers_.end();) {
    WorkerRecord& worker = it->second;
    absl::Duration silence = now - worker.last_sync;
    bool gone = false;
    if (!worker.lost && silence >= options_.lost_after) {
      // One that drained and had nothing left has gone as it was asked to.
      gone = worker.draining() && worker.Idle();
      if (!gone) {
        ++workers_lost_;
        worker.lost = true;
        FreeSlotsWhere([&](const GrantedSlot& slot) { return slot.worker == it->first; }, now);
      }
    }
    gone = gone || (worker.lost && silence >= options_.forget_after);
    it = gone ? workers_.erase(it) : std::next(it);
  }
  UpdateDemand();
}

void PlacementTable::UpdateDemand() {
  for (v1::Role role : kRoles) {
    double slots = 0;
    double workers = 0;
    for (const auto& [id, worker] : workers_) {
      auto found = worker.slots.find(role);
      if (worker.lost || found == worker.slots.end() || found->second.total == 0) continue;
      slots += found->second.total;
      ++workers;
    }
    demand_.SetSlotsPerWorker(role, workers > 0 ? slots / workers : 0);
  }
}

void PlacementTable::FailUnsatisfiable(absl::Duration now) {
  auto removed = queue_.RemoveWhere([&](const SlotRequirement& requirement) {
    return absl::IsFailedPrecondition(CheckSatisfiable(requirement, now));
  });
  for (const WaitQueue::Request& request : removed) {
    ++unsatisfiable_;
    outcomes_.push_back({request.ticket, CheckSatisfiable(request.asked.requirement, now)});
  }
}

absl::Status PlacementTable::Expired(const WaitQueue::Request& request) const {
  const SlotRequirement& requirement = request.asked.requirement;
  uint64_t busy = 0;
  uint64_t draining = 0;
  uint64_t sick = 0;
  for (const auto& [id, worker] : workers_) {
    if (worker.lost || !worker.Meets(requirement)) continue;
    if (worker.draining()) {
      ++draining;
    } else if (worker.sick()) {
      ++sick;
    } else {
      ++busy;
    }
  }
  if (busy + draining + sick == 0) {
    return absl::UnavailableError(
        absl::StrCat("no worker registered yet: ", WhyUnsatisfiable(workers_, requirement)));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no free slot for ", Describe(requirement), " within ",
                   absl::FormatDuration(request.asked.wait), "; of the fitting workers ", busy,
                   " busy, ", draining, " draining, ", sick, " sick"));
}

bool PlacementTable::AnyMeets(const SlotRequirement& requirement) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return !entry.second.lost && entry.second.Meets(requirement);
  });
}

bool PlacementTable::InGrace(const SlotRequirement& requirement, absl::Duration now) const {
  if (now < started_ + options_.grace) return true;
  bool any_registered = false;
  for (const auto& [id, worker] : workers_) {
    if (!worker.lost) any_registered = true;
    if (worker.lost && worker.Meets(requirement) &&
        now < worker.last_sync + options_.lost_after + options_.grace) {
      return true;
    }
  }
  return !any_registered;
}

}  // namespace kmosaic
