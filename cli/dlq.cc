// kmosaic dlq: conversations that ended without a result.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/job_client.h"
#include "cli/output/numbers.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/output/wire_json.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "common/base/enum_names.h"

namespace kmosaic {
namespace {

using nlohmann::ordered_json;

struct DlqArguments {
  std::string job;
  std::vector<uint32_t> items;
};

absl::StatusOr<std::unique_ptr<JobClient>> Client(const Host& host, const CommandLine& line) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return connection.status();
  return std::make_unique<JobClient>(host, *std::move(connection));
}

absl::Time FromWire(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

int List(Host& host, const CommandLine& line, const DlqArguments& arguments) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  auto items = (*client)->ListDeadLetters(arguments.job);
  if (!items.ok()) return Fail(host, items.status());
  if (line.output != OutputFormat::kTable) {
    ordered_json json = ordered_json::array();
    for (const v1::Item& item : *items) json.push_back(ToJson(item));
    PrintJson(*host.out, line.output, json);
    return kExitDone;
  }
  if (items->empty()) {
    *host.out << "There are no dead letters.\n";
    return kExitDone;
  }
  Table table({{"JOB"},
               {"ITEM", Align::kRight},
               {"TASK"},
               {"STATE"},
               {"ATTEMPTS", Align::kRight},
               {"STEPS", Align::kRight},
               {"SINCE"},
               {"LAST ERROR"}});
  absl::Time now = host.clock->Wall();
  for (const v1::Item& item : *items) {
    table.AddRow({item.id().job(), absl::StrCat(item.id().number()), item.task(),
                  ItemStateName(item.state()), absl::StrCat(item.attempts()),
                  absl::StrCat(item.steps()), Ago(FromWire(item.updated()), now),
                  item.last_error()});
  }
  *host.out << table.Render(host.TableWidth());
  return kExitDone;
}

int Show(Host& host, const CommandLine& line, const DlqArguments& arguments) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  auto detail = (*client)->GetItem(arguments.job, arguments.items[0]);
  if (!detail.ok()) return Fail(host, detail.status());
  const v1::Item& item = detail->item();
  if (line.output != OutputFormat::kTable) {
    PrintJson(*host.out, line.output, ToJson(item));
    return kExitDone;
  }
  *host.out << item.id().job() << '/' << item.id().number() << "  " << item.task() << "  "
            << ItemStateName(item.state()) << ", " << item.steps() << " steps\n";
  Table table({{"ATTEMPT", Align::kRight}, {"RUNNER"}, {"ENDED"}, {"OUTCOME"}});
  absl::Time now = host.clock->Wall();
  for (const v1::Attempt& attempt : item.history()) {
    table.AddRow({absl::StrCat(attempt.number()), attempt.runner(),
                  Ago(FromWire(attempt.ended()), now), attempt.outcome()});
  }
  *host.out << table.Render(host.TableWidth());
  return kExitDone;
}

int Replay(Host& host, const CommandLine& line, const DlqArguments& arguments) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  auto retried = (*client)->Retry(arguments.job, {}, arguments.items);
  if (!retried.ok()) return Fail(host, retried.status());
  if (line.output != OutputFormat::kTable) {
    PrintJson(*host.out, line.output, {{"job", arguments.job}, {"retried", *retried}});
  } else {
    *host.out << arguments.job << ": " << *retried << " conversations are ready again\n";
  }
  return kExitDone;
}

int Purge(Host& host, const CommandLine& line, const DlqArguments& arguments) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  auto purged = (*client)->PurgeDeadLetters(arguments.job, arguments.items);
  if (!purged.ok()) return Fail(host, purged.status());
  if (line.output != OutputFormat::kTable) {
    PrintJson(*host.out, line.output, {{"job", arguments.job}, {"purged", *purged}});
  } else {
    *host.out << arguments.job << ": " << *purged << " conversations are given up\n";
  }
  return kExitDone;
}

}  // namespace

void AddDlqCommands(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<DlqArguments>();
  CLI::App* dlq =
      app.add_subcommand("dlq", "Dead letters: conversations that ended without a result");
  dlq->require_subcommand(1);
  CLI::App* list = dlq->add_subcommand("list", "Failed and dead items with their last errors");
  list->add_option("--job", arguments->job, "only of this job")->type_name("ID");
  list->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return List(host, line, *arguments); };
  });
  CLI::App* show = dlq->add_subcommand("show", "The attempts of one item");
  show->add_option("JOB", arguments->job, "job id")->required()->type_name("");
  show->add_option("ITEM", arguments->items, "number of the item")
      ->required()
      ->expected(1)
      ->type_name("");
  show->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Show(host, line, *arguments); };
  });
  CLI::App* replay = dlq->add_subcommand("replay", "Make items of a job ready again");
  replay->add_option("JOB", arguments->job, "job id")->required()->type_name("");
  replay->add_option("ITEM", arguments->items, "numbers of items (default: all of the job)")
      ->type_name("");
  replay->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Replay(host, line, *arguments); };
  });
  CLI::App* purge =
      dlq->add_subcommand("purge", "Give items of a job up for good and drop their conversations");
  purge->add_option("JOB", arguments->job, "job id")->required()->type_name("");
  purge->add_option("ITEM", arguments->items, "numbers of items (default: all of the job)")
      ->type_name("");
  purge->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Purge(host, line, *arguments); };
  });
}

}  // namespace kmosaic
