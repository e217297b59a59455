#include "cli/system/restart_policy.h"

#include <algorithm>

namespace kmosaic {

absl::Duration RestartPolicy::OnExit(absl::Duration lifetime) {
  if (lifetime >= absl::Minutes(1)) deaths_ = 0;
  absl::Duration wait = absl::Milliseconds(500);
  for (int i = 0; i < deaths_ && wait < absl::Seconds(30); ++i) wait *= 2;
  ++deaths_;
  return std::min(wait, absl::Seconds(30));
}

}  // namespace kmosaic
