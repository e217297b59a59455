#include "coordinator/placement/wait_queue.h"

#include <algorithm>
#include <tuple>

namespace kmosaic {

void WaitQueue::Add(Request request) {
  const SlotRequest& asked = request.asked;
  Group& group = groups_[{asked.requirement.role, asked.group}];
  if (group.waiting == 0 && group.held == 0) group.turn = ++turns_;
  group.weight = std::max<uint32_t>(asked.weight, 1);
  ++group.waiting;
  ++waiting_[asked.requirement.role];
  by_ticket_[request.ticket] = {asked.requirement, asked.group};
  by_deadline_.insert({request.deadline, request.ticket});
  Line& line = lines_[asked.requirement][asked.group];
  uint64_t ticket = request.ticket;
  line.emplace(ticket, std::move(request));
}

WaitQueue::Request WaitQueue::Erase(
    std::map<SlotRequirement, std::map<std::string, Line>>::iterator requirement,
    std::map<std::string, Line>::iterator line, Line::iterator request) {
  Request taken = std::move(request->second);
  GroupKey key{taken.asked.requirement.role, taken.asked.group};
  by_ticket_.erase(taken.ticket);
  by_deadline_.erase({taken.deadline, taken.ticket});
  --groups_[key].waiting;
  --waiting_[key.first];
  line->second.erase(request);
  if (line->second.empty()) requirement->second.erase(line);
  if (requirement->second.empty()) lines_.erase(requirement);
  ForgetIfIdle(key);
  return taken;
}

std::optional<WaitQueue::Request> WaitQueue::Remove(uint64_t ticket) {
  auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return std::nullopt;
  auto requirement = lines_.find(found->second.first);
  auto line = requirement->second.find(found->second.second);
  return Erase(requirement, line, line->second.find(ticket));
}

std::vector<WaitQueue::Request> WaitQueue::RemoveExpired(absl::Duration now) {
  std::vector<Request> expired;
  while (!by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    expired.push_back(*Remove(by_deadline_.begin()->second));
  }
  return expired;
}

std::vector<WaitQueue::Request> WaitQueue::RemoveWhere(
    const std::function<bool(const SlotRequirement&)>& which) {
  std::vector<uint64_t> tickets;
  for (const auto& [requirement, lines] : lines_) {
    if (!which(requirement)) continue;
    for (const auto& [group, line] : lines) {
      for (const auto& [ticket, request] : line) tickets.push_back(ticket);
    }
  }
  std::sort(tickets.begin(), tickets.end());
  std::vector<Request> removed;
  for (uint64_t ticket : tickets) removed.push_back(*Remove(ticket));
  return removed;
}

std::optional<WaitQueue::Request> WaitQueue::TakeFirst(
    v1::Role role, const std::function<bool(const SlotRequirement&)>& open,
    const std::function<bool(const Request&)>& visit) {
  struct Candidate {
    double share;
    uint64_t turn;
    std::map<SlotRequirement, std::map<std::string, Line>>::iterator requirement;
    std::map<std::string, Line>::iterator line;
  };
  std::vector<Candidate> candidates;
  for (auto requirement = lines_.begin(); requirement != lines_.end(); ++requirement) {
    if (requirement->first.role != role || !open(requirement->first)) continue;
    for (auto line = requirement->second.begin(); line != requirement->second.end(); ++line) {
      const Group& group = groups_[{role, line->first}];
      candidates.push_back(
          {static_cast<double>(group.held) / group.weight, group.turn, requirement, line});
    }
  }
  // Lines of one group differ only in their oldest request.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.share, a.turn, a.line->second.begin()->first) <
           std::tuple(b.share, b.turn, b.line->second.begin()->first);
  });
  for (Candidate& candidate : candidates) {
    Line& line = candidate.line->second;
    for (auto request = line.begin(); request != line.end(); ++request) {
      if (visit(request->second)) return Erase(candidate.requirement, candidate.line, request);
    }
  }
  return std::nullopt;
}

void WaitQueue::AddHeld(v1::Role role, const std::string& group, uint32_t weight) {
  Group& state = groups_[{role, group}];
  state.weight = std::max<uint32_t>(weight, 1);
  ++state.held;
  state.turn = ++turns_;
}

void WaitQueue::RemoveHeld(v1::Role role, const std::string& group) {
  auto found = groups_.find({role, group});
  if (found == groups_.end() || found->second.held == 0) return;
  --found->second.held;
  ForgetIfIdle(found->first);
}

void WaitQueue::ForgetIfIdle(const GroupKey& key) {
  auto found = groups_.find(key);
  if (found != groups_.end() && found->second.held == 0 && found->second.waiting == 0) {
    groups_.erase(found);
  }
}

uint64_t WaitQueue::Waiting(v1::Role role) const {
  auto found = waiting_.find(role);
  return found == waiting_.end() ? 0 : found->second;
}

}  // namespace kmosaic
