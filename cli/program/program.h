// The program as a function: arguments and a world in, exit code out.
#ifndef KMOSAIC_CLI_PROGRAM_PROGRAM_H_
#define KMOSAIC_CLI_PROGRAM_PROGRAM_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/program/command_line.h"
#include "cli/program/host.h"

namespace kmosaic {

// `arguments` without the program's name.
int RunProgram(const std::vector<std::string>& arguments, Host& host);

// Each adds one noun's commands. A command's callback sets `line.action`; `line` lives until
// that has run.
void AddUpCommand(CLI::App& app, CommandLine& line);
void AddSubmitCommand(CLI::App& app, CommandLine& line);
void AddJobCommands(CLI::App& app, CommandLine& line);
void AddTaskCommands(CLI::App& app, CommandLine& line);
void AddScoreCommand(CLI::App& app, CommandLine& line);
void AddExportCommand(CLI::App& app, CommandLine& line);
void AddTeacherCommand(CLI::App& app, CommandLine& line);
void AddWorkerCommands(CLI::App& app, CommandLine& line);
void AddDlqCommands(CLI::App& app, CommandLine& line);
void AddStoreCommands(CLI::App& app, CommandLine& line);
void AddHealthCommand(CLI::App& app, CommandLine& line);
void AddDoctorCommand(CLI::App& app, CommandLine& line);
void AddCompletionCommand(CLI::App& app, CommandLine& line);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_PROGRAM_H_
