// What somebody who wants to use a worker asks for.
#ifndef KMOSAIC_COORDINATOR_PLACEMENT_SLOT_REQUEST_H_
#define KMOSAIC_COORDINATOR_PLACEMENT_SLOT_REQUEST_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// What a worker must have.
struct SlotRequirement {
  v1::Role role = v1::ROLE_VERIFY;
  // UNSPECIFIED: any device.
  v1::DeviceKind device = v1::DEVICE_KIND_UNSPECIFIED;
  // Labels it must have, with exactly these values.
  std::map<std::string, std::string> labels;

  friend bool operator==(const SlotRequirement&, const SlotRequirement&) = default;
  friend auto operator<=>(const SlotRequirement&, const SlotRequirement&) = default;
};

struct SlotRequest {
  SlotRequirement requirement;
  // Who shares fairly with whom: a job's id, or a score stream's.
  std::string group;
  // Share of the group relative to others; 0 counts as 1.
  uint32_t weight = 1;
  // Whose slots are freed together by ReleaseHolder: a lease, or a score stream.
  std::string holder;
  // Workers to pass over while another one fits (they just failed).
  std::set<std::string> avoid;
  // Longest wait for a slot.
  absl::Duration wait = absl::Seconds(20);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_PLACEMENT_SLOT_REQUEST_H_
