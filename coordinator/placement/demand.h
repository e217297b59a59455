// How many workers the fleet should have, by role: an autoscaler's signal.
//
// Little's law: requests served per second x seconds that a slot is held = slots in use on
// average. To that comes what it takes to serve those who wait within a minute. Both sides
// are averages over the last minutes, so that the figure does not jump.
//
//   wanted = ceil((rate * service + waiting * service / 60 s) / slots per worker)
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_DEMAND_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_DEMAND_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// Not thread-safe. Times are steady.
class Demand {
 public:
  explicit Demand(absl::Duration now) : started_(now) {}

  void Granted(v1::Role role, absl::Duration now);
  // A slot came back (or was taken back) after `held`.
  void Released(v1::Role role, absl::Duration held, absl::Duration now);
  // Slots of the role per worker that has the role, as seen now; 0 when there is none (the
  // last known figure is used then, 1 at first).
  void SetSlotsPerWorker(v1::Role role, double slots);

  uint64_t WantedWorkers(v1::Role role, uint64_t waiting, absl::Duration now) const;

 private:
  // A sum whose parts fade with a time constant.
  struct Fading {
    double value = 0;
    absl::Duration at;
    double At(absl::Duration now) const;
    void Add(double amount, absl::Duration now);
  };
  struct Role {
    Fading grants;
    Fading released;
    Fading held_seconds;
    double slots_per_worker = 1;
  };

  const absl::Duration started_;
  std::map<v1::Role, Role> roles_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_DEMAND_H_
