// kmosaic store: backups of the coordinator's data, and checks of it.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/output/print_json.h"
#include "cli/output/wire_json.h"
#include "cli/program/connection.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/system/programs.h"
#include "common/base/enum_names.h"
#include "common/lifecycle/child_process.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"

namespace kmosaic {
namespace {

using nlohmann::ordered_json;

// Large stores are copied and read whole.
constexpr absl::Duration kPatience = absl::Hours(6);

struct StoreArguments {
  std::string directory;
  std::string data_dir;
};

int Backup(Host& host, const CommandLine& line, const StoreArguments& arguments) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  auto stub = v1::AdminService::NewStub(connection->channel);
  v1::BackupRequest request;
  request.set_directory(arguments.directory);
  auto made = Call<v1::BackupResponse>(
      host, *connection,
      [&](auto* context, auto* response) { return stub->Backup(context, request, response); },
      kPatience);
  if (!made.ok()) return Fail(host, made.status());
  if (line.output != OutputFormat::kTable) {
    PrintJson(*host.out, line.output, ToJson(*made));
  } else {
    *host.out << arguments.directory << ": " << made->files() << " files, " << made->bytes()
              << " bytes\n";
  }
  return kExitDone;
}

// The store belongs to the coordinator's program, so that does the work; its words about
// errors go to standard error as they are.
int RunCoordinator(Host& host, const CommandLine& line, const std::vector<std::string>& flags,
                   const std::string& done) {
  absl::StatusOr<std::string> program = FindSisterProgram(host, "kmosaic-coordinator");
  if (!program.ok()) return Fail(host, program.status());
  ChildProcess::Options options;
  options.argv = {*program};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.pipe_stdout = true;
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(options);
  if (!child.ok()) return Fail(host, child.status());
  Interrupt::Scope scope(*host.interrupt, [&child] { child->Signal(SIGTERM); });
  absl::StatusOr<std::string> found = child->ReadLine(kPatience);
  std::optional<int> code = child->Wait(kPatience);
  if (!found.ok() || code != 0) {
    return host.interrupt->triggered() ? kExitInterrupted : kExitNo;
  }
  ordered_json json = ordered_json::parse(*found, nullptr, /*allow_exceptions=*/false);
  if (line.output != OutputFormat::kTable) {
    PrintJson(*host.out, line.output, json);
    return kExitDone;
  }
  *host.out << done << '\n';
  for (const auto& [name, value] : json.items()) {
    *host.out << "  " << name << ' '
              << (value.is_string() ? value.get<std::string>() : value.dump()) << '\n';
  }
  return kExitDone;
}

}  // namespace

void AddStoreCommands(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<StoreArguments>();
  CLI::App* store =
      app.add_subcommand("store", "Back up, restore and check the coordinator's data");
  store->require_subcommand(1);
  CLI::App* backup = store->add_subcommand(
      "backup", "Back a running coordinator up to a new directory on its machine");
  backup->add_option("DIRECTORY", arguments->directory, "absolute path; nothing may be there")
      ->required()
      ->type_name("");
  backup->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Backup(host, line, *arguments); };
  });
  CLI::App* restore =
      store->add_subcommand("restore", "Make a new data directory from a backup, here");
  restore->add_option("BACKUP", arguments->directory, "directory of the backup")
      ->required()
      ->type_name("");
  restore->add_option("DATA_DIR", arguments->data_dir, "new data directory; missing or empty")
      ->required()
      ->type_name("");
  restore->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) {
      return RunCoordinator(
          host, line, {"--restore-from", arguments->directory, "--data-dir", arguments->data_dir},
          absl::StrCat(arguments->data_dir, " is restored; start a coordinator on it"));
    };
  });
  CLI::App* check = store->add_subcommand(
      "check", "Read every row of a data directory or backup whose coordinator is stopped");
  check->add_option("DATA_DIR", arguments->data_dir, "data directory or backup")
      ->required()
      ->type_name("");
  check->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) {
      return RunCoordinator(host, line, {"--check", "--data-dir", arguments->data_dir},
                            absl::StrCat(arguments->data_dir, " is sound"));
    };
  });
}

}  // namespace kmosaic
