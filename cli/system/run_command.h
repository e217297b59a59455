// Runs a short program and takes what it prints.
#ifndef KMOSAIC_CLI_SYSTEM_RUN_COMMAND_H_
#define KMOSAIC_CLI_SYSTEM_RUN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kmosaic {

struct CommandOutput {
  int exit_code;
  std::vector<std::string> lines;
};

// Standard output by lines; standard error is dropped. NOT_FOUND when there is no such
// program, DEADLINE_EXCEEDED (and it is killed) after `timeout`.
absl::StatusOr<CommandOutput> RunCommand(const std::vector<std::string>& argv,
                                         absl::Duration timeout);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_RUN_COMMAND_H_
