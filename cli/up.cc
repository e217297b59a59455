// kmosaic up: the whole system on this machine, in the foreground.
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/program/up_record.h"
#include "cli/system/local_system.h"
#include "cli/system/programs.h"

namespace kmosaic {
namespace {

int Up(Host& host, SystemOptions options) {
  if (options.data.empty()) options.data = DefaultDataDirectory(host);
  auto data = DataDirectory::Open(options.data);
  if (!data.ok()) return Fail(host, data.status());
  options.data = (*data)->path();
  auto daemons = PlanDaemons(host, options);
  if (!daemons.ok()) return Fail(host, daemons.status());

  std::ostream& err = *host.err;
  Supervisor::Options supervision;
  supervision.say = [&err](const std::string& line) { err << "kmosaic up: " << line << std::endl; };
  err << "starting (logs in " << options.data << "/logs) ..." << std::endl;
  Supervisor supervisor(*std::move(daemons), *host.clock, supervision);
  if (absl::Status status = StartSystem(supervisor, options, *host.clock, *host.interrupt);
      !status.ok()) {
    supervisor.Drain();
    return Fail(host, status);
  }
  const ReadyLine& coordinator = supervisor.ready(0);
  auto record = PublishedUpRecord::Publish(
      UpRecordDirectory(host), {getpid(), coordinator.grpc, coordinator.http, options.data});
  if (!record.ok()) {
    err << "kmosaic up: other commands will not find this system by themselves ("
        << record.status().message() << "); give them --coordinator" << std::endl;
  }
  *host.out << "KernelMosaic is up.\n"
            << "  coordinator  " << coordinator.grpc << '\n'
            << "  metrics      http://" << coordinator.http << "/metrics\n"
            << "  data         " << options.data << '\n'
            << "  logs         " << options.data << "/logs\n"
            << "Other terminals of yours find it by themselves: kmosaic submit JOB.yaml, kmosaic "
               "job list.\n"
            << "Ctrl-C ends it; nothing that was done is lost." << std::endl;
  supervisor.Run(*host.interrupt);
  if (record.ok()) record->reset();
  err << "ending ..." << std::endl;
  supervisor.Drain();
  return kExitDone;
}

}  // namespace

void AddUpCommand(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<SystemOptions>();
  CLI::App* command =
      app.add_subcommand("up", "Run the whole system on this machine, in the foreground");
  command
      ->add_option("--data", options->data,
                   "directory of everything that is kept (default: ~/.local/share/kmosaic)")
      ->type_name("DIR");
  command->add_option("--device", options->device, "what kernels run on: auto, cuda or emulated")
      ->check(CLI::IsMember({"auto", "cuda", "emulated"}).description(""))
      ->type_name("DEVICE")
      ->capture_default_str();
  command->add_option("--runners", options->runners, "agent runners")
      ->check(CLI::Range(0, 64).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--workers", options->workers, "GPU workers, spread over the visible GPUs")
      ->check(CLI::Range(0, 64).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->callback(
      [options, &line] { line.action = [options](Host& host) { return Up(host, *options); }; });
}

}  // namespace kmosaic
