// kmosaic health: whether the coordinator answers, and what it is.
#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/output/numbers.h"
#include "cli/output/print_json.h"
#include "cli/output/wire_json.h"
#include "cli/program/connection.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

int Health(Host& host, const CommandLine& line) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  auto stub = v1::AdminService::NewStub(connection->channel);
  auto server = Call<v1::Server>(
      host, *connection,
      [&](auto* context, auto* response) {
        return stub->GetServer(context, v1::GetServerRequest(), response);
      },
      absl::Seconds(10));
  if (!server.ok()) return Fail(host, server.status());
  auto fleet = Call<v1::ListWorkersResponse>(host, *connection, [&](auto* context, auto* response) {
    return stub->ListWorkers(context, v1::ListWorkersRequest(), response);
  });
  if (!fleet.ok()) return Fail(host, fleet.status());
  int ready = 0;
  for (const v1::Worker& worker : fleet->workers()) {
    if (worker.state() == v1::WORKER_STATE_READY || worker.state() == v1::WORKER_STATE_BUSY)
      ++ready;
  }
  if (line.output != OutputFormat::kTable) {
    nlohmann::ordered_json json = ToJson(*server);
    json["coordinator"] = connection->target;
    json["workers"] = fleet->workers_size();
    json["workers_ready"] = ready;
    json["runners"] = fleet->runners_size();
    PrintJson(*host.out, line.output, json);
  } else {
    absl::Time started = absl::FromUnixSeconds(server->started().seconds());
    *host.out << "coordinator  " << connection->target << ", version " << server->version()
              << ", up for " << ShortDuration(host.clock->Wall() - started) << '\n'
              << "store        incarnation " << server->incarnation() << ", epoch "
              << server->epoch() << ", schema " << server->schema_version() << '\n'
              << "metrics      http://" << server->http_endpoint() << "/metrics\n"
              << "workers      " << ready << " of " << fleet->workers_size() << " take work\n"
              << "runners      " << fleet->runners_size() << '\n';
  }
  // Without both, jobs wait.
  return ready > 0 && fleet->runners_size() > 0 ? kExitDone : kExitNo;
}

}  // namespace

void AddHealthCommand(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "health",
      "Ask the coordinator how it is; exit code 1 when no worker or no runner takes work");
  command->callback([&line] { line.action = [&line](Host& host) { return Health(host, line); }; });
}

}  // namespace kmosaic
