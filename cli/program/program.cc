#include "cli/program/program.h"

#include <algorithm>
#include <map>

#include "cli/program/exit_code.h"
#include "common/base/version.h"

namespace kmosaic {

namespace {

void AddGlobalOptions(CLI::App& app, CommandLine& line) {
  static const std::map<std::string, OutputFormat> formats = {{"table", OutputFormat::kTable},
                                                              {"json", OutputFormat::kJson},
                                                              {"jsonl", OutputFormat::kJsonl}};
  app.add_option("--coordinator", line.coordinator,
                 "HOST:PORT of the coordinator; otherwise KMOSAIC_COORDINATOR, otherwise a running "
                 "`kmosaic up` of this user")
      ->type_name("ADDRESS");
  app.add_option("-o,--output", line.output, "table (the default), json or jsonl")
      ->transform(CLI::CheckedTransformer(formats).description(""))
      ->type_name("FORMAT");
}

}  // namespace

int RunProgram(const std::vector<std::string>& arguments, Host& host) {
  CommandLine line;
  CLI::App app(
      "KernelMosaic: CUDA tasks into verified solutions and the conversations that led to them",
      "kmosaic");
  app.set_version_flag("--version", std::string("kmosaic ") + kVersion);
  app.require_subcommand(1);
  // `kmosaic job list -o json` means the same as `kmosaic -o json job list`.
  app.fallthrough();
  AddGlobalOptions(app, line);
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 done, 1 the answer is no, 2 bad usage or input, 3 service not reached or\n"
      "refused, 4 interrupted. `kmosaic COMMAND --help` tells more.");
  AddUpCommand(app, line);
  AddSubmitCommand(app, line);
  AddJobCommands(app, line);
  AddTaskCommands(app, line);
  AddScoreCommand(app, line);
  AddExportCommand(app, line);
  AddTeacherCommand(app, line);
  AddWorkerCommands(app, line);
  AddDlqCommands(app, line);
  AddStoreCommands(app, line);
  AddHealthCommand(app, line);
  AddDoctorCommand(app, line);
  AddCompletionCommand(app, line);
  // CLI11 takes them from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    // Prints help and version too; its error codes are not ours.
    return app.exit(error, *host.out, *host.err) == 0 ? kExitDone : kExitBadInput;
  }
  if (!line.action) return kExitBadInput;
  return line.action(host);
}

}  // namespace kmosaic
