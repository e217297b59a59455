// What the program's exit codes mean; part of its contract.
#ifndef KMOSAIC_CLI_PROGRAM_EXIT_CODE_H_
#define KMOSAIC_CLI_PROGRAM_EXIT_CODE_H_

#include "absl/status/status.h"

namespace kmosaic {

enum ExitCode {
  kExitDone = 0,
  // The answer is no: a candidate failed, a job ended with failures, a check failed.
  kExitNo = 1,
  // Bad usage or bad input.
  kExitBadInput = 2,
  // The service cannot be reached, or it refused.
  kExitService = 3,
  kExitInterrupted = 4,
};

// INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS and OUT_OF_RANGE are the caller's input;
// every other failure is the service's.
ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_EXIT_CODE_H_
