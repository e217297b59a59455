// --watch: prints something again and again.
#ifndef KMOSAIC_CLI_PROGRAM_REFRESH_H_
#define KMOSAIC_CLI_PROGRAM_REFRESH_H_

#include <functional>

#include "absl/status/status.h"
#include "cli/program/host.h"

namespace kmosaic {

// Calls `print` once, or with `again` every two seconds until Ctrl-C, on a terminal over
// what was there. Returns the exit code; the first failure ends it.
int Refresh(Host& host, bool again, const std::function<absl::Status()>& print);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_REFRESH_H_
