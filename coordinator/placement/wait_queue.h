// Requests that wait for a slot, in the order in which they are to be served.
//
// Between groups: who holds the fewest slots of the role for its weight comes first; equals
// take turns. Inside a group: first come, first served. Requests are kept apart by what
// they require, so that one that must wait never stands before one that need not.
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_WAIT_QUEUE_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_WAIT_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/placement/slot_request.h"

namespace kmosaic {

// Not thread-safe.
class WaitQueue {
 public:
  struct Request {
    uint64_t ticket = 0;
    SlotRequest asked;
    // Steady.
    absl::Duration since;
    absl::Duration deadline;
  };

  // Tickets are unique and grow.
  void Add(Request request);

  // Takes a request out; nothing for an unknown one.
  std::optional<Request> Remove(uint64_t ticket);

  // Takes out those whose deadline has come.
  std::vector<Request> RemoveExpired(absl::Duration now);

  // Takes out those whose requirement fits `which`.
  std::vector<Request> RemoveWhere(const std::function<bool(const SlotRequirement&)>& which);

  // The requests of the role in serving order, until `visit` says true; that one is taken
  // out and returned. `open` says whether a requirement has any free worker at all.
  std::optional<Request> TakeFirst(v1::Role role,
                                   const std::function<bool(const SlotRequirement&)>& open,
                                   const std::function<bool(const Request&)>& visit);

  // Slots that a group holds change its place.
  void AddHeld(v1::Role role, const std::string& group, uint32_t weight);
  void RemoveHeld(v1::Role role, const std::string& group);

  uint64_t Waiting(v1::Role role) const;

 private:
  using GroupKey = std::pair<v1::Role, std::string>;
  struct Group {
    uint32_t weight = 1;
    uint64_t held = 0;
    uint64_t waiting = 0;
    // When it came in or was served last, on the queue's own count.
    uint64_t turn = 0;
  };
  // By ticket, which is by arrival.
  using Line = std::map<uint64_t, Request>;

  Request Erase(std::map<SlotRequirement, std::map<std::string, Line>>::iterator requirement,
                std::map<std::string, Line>::iterator line, Line::iterator request);
  void ForgetIfIdle(const GroupKey& key);

  std::map<SlotRequirement, std::map<std::string, Line>> lines_;
  std::map<GroupKey, Group> groups_;
  std::map<uint64_t, std::pair<SlotRequirement, std::string>> by_ticket_;
  std::set<std::pair<absl::Duration, uint64_t>> by_deadline_;
  std::map<v1::Role, uint64_t> waiting_;
  uint64_t turns_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_WAIT_QUEUE_H_
