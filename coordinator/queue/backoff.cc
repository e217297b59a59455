#include "coordinator/queue/backoff.h"

#include <algorithm>

namespace kmosaic {

absl::Duration FullJitter(uint32_t failures, absl::Duration base, absl::Duration cap,
                          uint64_t random) {
  absl::Duration limit =
      std::min(cap, base * static_cast<double>(uint64_t{1} << std::min(failures, 40u)));
  // The top 53 bits are a double in [0, 1).
  return limit * (static_cast<double>(random >> 11) * 0x1p-53);
}

}  // namespace kmosaic
