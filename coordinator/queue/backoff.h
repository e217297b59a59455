#ifndef KMOSAIC_COORDINATOR_QUEUE_BACKOFF_H_
#define KMOSAIC_COORDINATOR_QUEUE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace kmosaic {

// Full jitter: uniform in [0, min(cap, base * 2^failures)], decided by 64 random bits.
absl::Duration FullJitter(uint32_t failures, absl::Duration base, absl::Duration cap,
                          uint64_t random);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_BACKOFF_H_
