// One registered worker as the placement table sees it, and whether it meets a requirement.
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_WORKER_RECORD_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_WORKER_RECORD_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "coordinator/placement/slot_request.h"
#include "kernelmosaic/v1/admin.pb.h"
#include "kernelmosaic/v1/worker.pb.h"

namespace kmosaic {

struct WorkerRecord {
  struct Slots {
    uint32_t total = 0;
    // May exceed `total` for a while after a worker has shrunk.
    uint32_t used = 0;
  };

  // As the worker last told it.
  v1::WorkerSyncRequest said;
  std::map<v1::Role, Slots> slots;
  // An operator's order; it ends with this incarnation of the worker.
  bool drain_ordered = false;
  // It has synced before in this incarnation, so it has the key that grants are signed with.
  bool introduced = false;
  bool lost = false;
  // A call to it failed to get through; it gets no work before it syncs again.
  bool suspect = false;
  absl::Duration last_sync;
  absl::Time last_sync_wall;
  // Number of the grant that it got last; spreads grants between equals.
  uint64_t last_grant = 0;

  bool draining() const { return drain_ordered || said.draining(); }
  bool sick() const { return said.health() == v1::WORKER_HEALTH_SICK; }
  // New requests may go to it.
  bool TakesWork() const { return introduced && !lost && !suspect && !draining() && !sick(); }
  bool HasFree(v1::Role role) const;
  bool Idle() const;
  v1::WorkerState State() const;
  v1::Worker ToWire() const;

  // Role, device and labels fit; says nothing about health or load.
  bool Meets(const SlotRequirement& requirement) const;
  v1::DeviceKind device() const;
};

// Why none of the workers that are not lost meets the requirement, naming the first thing
// that is missing and what is there instead. Only for a requirement that none meets.
std::string WhyUnsatisfiable(const std::map<std::string, WorkerRecord>& workers,
                             const SlotRequirement& requirement);

// "verify on emulated with gpu=H200, zone=a".
std::string Describe(const SlotRequirement& requirement);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_WORKER_RECORD_H_
