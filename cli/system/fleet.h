// Whether the workers of a system that was just started take work.
#ifndef KMOSAIC_CLI_SYSTEM_FLEET_H_
#define KMOSAIC_CLI_SYSTEM_FLEET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/program/interrupt.h"
#include "common/base/clock.h"

namespace kmosaic {

// Asks the coordinator at `target` until `count` of its workers take work (ready or busy):
// a worker says that it serves a moment before the coordinator lists it. Returns at once for
// 0. DEADLINE_EXCEEDED after `patience` with how many there are, CANCELLED on `stop`.
absl::Status AwaitWorkers(const std::string& target, int count, absl::Duration patience,
                          const Clock& clock, Interrupt& stop);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_FLEET_H_
