// What was said on the command line to every command.
#ifndef KMOSAIC_CLI_PROGRAM_COMMAND_LINE_H_
#define KMOSAIC_CLI_PROGRAM_COMMAND_LINE_H_

#include <functional>
#include <string>

#include "cli/program/host.h"

namespace kmosaic {

enum class OutputFormat { kTable, kJson, kJsonl };

// The global options, and the command that was chosen: its action runs after parsing, so that
// nothing of CLI11 is on the stack while it works.
struct CommandLine {
  std::string coordinator;
  OutputFormat output = OutputFormat::kTable;
  std::function<int(Host&)> action;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_COMMAND_LINE_H_
