// Which job is served next.
//
// Priority bands 0..9: the highest band with something to do goes first. Inside a band
// jobs share by weight: each grant moves a job's virtual time on by 1 / weight, and the
// job that is furthest behind is next. A job that becomes active starts at its band's
// time, so that it cannot catch up on a past in which it wanted nothing.
// Ageing: a job rises by one band for every `ageing_grants` grants that it was passed
// over; one grant brings it back to its own. It is counted in grants, not in time, so that
// a fleet that is merely slow does not turn priorities round.
#ifndef KMOSAIC_COORDINATOR_QUEUE_FAIR_SHARE_H_
#define KMOSAIC_COORDINATOR_QUEUE_FAIR_SHARE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace kmosaic {

inline constexpr uint32_t kPriorityBands = 10;

// Not thread-safe. Each call is O(log jobs) with ten bands.
class FairShare {
 public:
  explicit FairShare(uint64_t ageing_grants) : ageing_grants_(ageing_grants) {}

  // Tells whether the job could be given a grant now. `priority` below kPriorityBands,
  // `weight` at least 1.
  void Update(uint64_t job, bool active, uint32_t priority, uint64_t weight);
  void Remove(uint64_t job);

  // The job to serve, while any is active.
  std::optional<uint64_t> Pick() const;

  // A grant went to this active job.
  void Charge(uint64_t job);
  // So many of its grants did not come about.
  void Refund(uint64_t job, uint64_t grants);

  // The highest band with active jobs, and the sum of their weights; the sharers of a larger
  // whole are compared by it. Without any the weight is 0.
  struct Top {
    uint32_t priority = 0;
    uint64_t weight = 0;
    bool operator==(const Top&) const = default;
  };
  Top HighestBand() const;

 private:
  struct Entry {
    uint32_t priority = 0;
    uint64_t weight = 1;
    bool active = false;
    double virtual_time = 0;
    // Value of grants_ when it became active or was last served.
    uint64_t since = 0;
  };
  struct Band {
    double virtual_time = 0;
    // Of its active jobs.
    uint64_t weight = 0;
    std::set<std::pair<double, uint64_t>> by_time;
    std::set<std::pair<uint64_t, uint64_t>> by_wait;
  };

  void Insert(uint64_t job, const Entry& entry);
  void Erase(uint64_t job, const Entry& entry);

  const uint64_t ageing_grants_;
  uint64_t grants_ = 0;
  std::map<uint64_t, Entry> entries_;
  std::array<Band, kPriorityBands> bands_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_FAIR_SHARE_H_
