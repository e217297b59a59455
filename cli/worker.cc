// kmosaic worker: the fleet.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output/numbers.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/output/wire_json.h"
#include "cli/program/connection.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/program/refresh.h"
#include "common/base/enum_names.h"
#include "kernelmosaic/v1/admin.grpc.pb.h"

namespace kmosaic {
namespace {

struct WorkerArguments {
  std::string id;
  bool undo = false;
  bool watch = false;
};

absl::Time FromWire(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

std::string StateName(v1::WorkerState state) {
  std::string name = v1::WorkerState_Name(state).substr(std::string("WORKER_STATE_").size());
  return absl::AsciiStrToLower(name);
}

std::string Slots(const v1::Worker& worker) {
  std::vector<std::string> parts;
  for (const v1::WorkerSlots& slots : worker.slots()) {
    parts.push_back(absl::StrCat(RoleName(slots.role()), " ", slots.used(), "/", slots.total()));
  }
  return absl::StrJoin(parts, ", ");
}

std::string Labels(const v1::Worker& worker) {
  std::map<std::string, std::string> labels(worker.labels().begin(), worker.labels().end());
  return absl::StrJoin(labels, ",", absl::PairFormatter("="));
}

void PrintTables(const Host& host, const v1::ListWorkersResponse& fleet) {
  absl::Time now = host.clock->Wall();
  if (fleet.workers().empty()) {
    *host.out << "No worker is registered. `kmosaic up` starts one here; kmosaic-gpu-worker "
                 "--coordinator ADDRESS "
                 "joins this coordinator.\n";
  } else {
    Table table(
        {{"WORKER"}, {"STATE"}, {"DEVICE"}, {"SLOTS IN USE"}, {"LABELS"}, {"ADDRESS"}, {"SEEN"}});
    for (const v1::Worker& worker : fleet.workers()) {
      std::string state = StateName(worker.state());
      if (!worker.health_reason().empty()) absl::StrAppend(&state, ": ", worker.health_reason());
      table.AddRow({worker.id(), state, worker.device().name(), Slots(worker), Labels(worker),
                    worker.endpoint(), Ago(FromWire(worker.last_sync()), now)});
    }
    *host.out << table.Render(host.TableWidth());
  }
  if (fleet.runners().empty()) {
    *host.out << "\nNo agent runner is registered: jobs will wait.\n";
    return;
  }
  Table runners(
      {{"RUNNER"}, {"CONVERSATIONS", Align::kRight}, {"FREE", Align::kRight}, {"STATE"}, {"SEEN"}});
  for (const v1::Runner& runner : fleet.runners()) {
    runners.AddRow({runner.id(), absl::StrCat(runner.held()), absl::StrCat(runner.free()),
                    runner.draining() ? "draining" : "ready",
                    Ago(FromWire(runner.last_sync()), now)});
  }
  *host.out << '\n' << runners.Render(host.TableWidth());
}

int List(Host& host, const CommandLine& line, bool watch) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  auto stub = v1::AdminService::NewStub(connection->channel);
  return Refresh(host, watch, [&]() -> absl::Status {
    auto fleet =
        Call<v1::ListWorkersResponse>(host, *connection, [&](auto* context, auto* response) {
          return stub->ListWorkers(context, v1::ListWorkersRequest(), response);
        });
    if (!fleet.ok()) return fleet.status();
    if (line.output == OutputFormat::kTable) {
      PrintTables(host, *fleet);
    } else if (line.output == OutputFormat::kJson) {
      PrintJson(*host.out, line.output, ToJson(*fleet));
    } else {
      PrintJson(*host.out, line.output, ToJson(*fleet)["workers"]);
    }
    return absl::OkStatus();
  });
}

int Drain(Host& host, const CommandLine& line, const WorkerArguments& arguments) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  auto stub = v1::AdminService::NewStub(connection->channel);
  v1::DrainWorkerRequest request;
  request.set_id(arguments.id);
  request.set_drain(!arguments.undo);
  auto reply = Call<v1::DrainWorkerResponse>(host, *connection, [&](auto* context, auto* response) {
    return stub->DrainWorker(context, request, response);
  });
  if (!reply.ok()) return Fail(host, reply.status());
  if (line.output != OutputFormat::kTable) {
    PrintJson(*host.out, line.output, ToJson(reply->worker()));
  } else if (arguments.undo) {
    *host.out << arguments.id << " takes work again\n";
  } else {
    *host.out << arguments.id
              << " takes no new work; it finishes what runs there and then ends (--undo takes it "
                 "back until then)\n";
  }
  return kExitDone;
}

}  // namespace

void AddWorkerCommands(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<WorkerArguments>();
  CLI::App* worker = app.add_subcommand("worker", "List and drain GPU workers");
  worker->require_subcommand(1);
  CLI::App* list =
      worker->add_subcommand("list", "Workers and agent runners, their slots and health");
  list->add_flag("-w,--watch", arguments->watch, "again every two seconds");
  list->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return List(host, line, arguments->watch); };
  });
  CLI::App* drain =
      worker->add_subcommand("drain", "Give a worker no new work; it ends when it has none");
  drain->add_option("ID", arguments->id, "worker id")->required()->type_name("");
  drain->add_flag("--undo", arguments->undo, "take a draining worker back");
  drain->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Drain(host, line, *arguments); };
  });
}

}  // namespace kmosaic
