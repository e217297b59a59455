// kmosaic doctor: what works on this machine, and how to mend what does not.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/doctor/check.h"
#include "cli/output/print_json.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/system/local_system.h"

namespace kmosaic {
namespace {

struct DoctorArguments {
  std::string data;
  bool quick = false;
};

void Print(const Host& host, const Check& check) {
  Colour colour = check.result == CheckResult::kOk     ? Colour::kGreen
                  : check.result == CheckResult::kWarn ? Colour::kYellow
                                                       : Colour::kRed;
  std::string result = CheckResultName(check.result);
  *host.out << Coloured(host, colour, result) << std::string(6 - result.size(), ' ') << check.name
            << std::string(15 - std::min<size_t>(14, check.name.size()), ' ') << check.found
            << '\n';
  if (!check.fix.empty()) *host.out << std::string(21, ' ') << "-> " << check.fix << '\n';
  *host.out << std::flush;
}

int Doctor(Host& host, const CommandLine& line, const DoctorArguments& arguments) {
  std::vector<Check> checks;
  auto add = [&](const Check& check) {
    checks.push_back(check);
    if (line.output == OutputFormat::kTable) Print(host, check);
  };
  for (const Check& check :
       MachineChecks(arguments.data.empty() ? DefaultDataDirectory(host) : arguments.data))
    add(check);
  for (const Check& check : InstallationChecks(host)) add(check);
  if (!arguments.quick && !host.interrupt->triggered()) add(SelfTestCheck(host));
  add(CoordinatorCheck(host, line.coordinator));
  bool failed = false;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    failed = failed || check.result == CheckResult::kFail;
    json.push_back({{"check", check.name},
                    {"result", CheckResultName(check.result)},
                    {"found", check.found},
                    {"fix", check.fix}});
  }
  if (line.output != OutputFormat::kTable) PrintJson(*host.out, line.output, json);
  if (host.interrupt->triggered()) return kExitInterrupted;
  return failed ? kExitNo : kExitDone;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say what works on this machine, and how to mend what does not");
  command
      ->add_option("--data", arguments->data,
                   "data directory that would be used (default: as for up)")
      ->type_name("DIR");
  command->add_flag("--quick", arguments->quick, "leave out the worker's self-test");
  command->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Doctor(host, line, *arguments); };
  });
}

}  // namespace kmosaic
