// kmosaic submit: a job file becomes a job.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/follow.h"
#include "cli/jobs/job_client.h"
#include "cli/jobs/job_view.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/output/wire_json.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/system/local_system.h"
#include "cli/taskfiles/job_file.h"
#include "common/base/ids.h"

namespace kmosaic {
namespace {

struct SubmitArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::string request_id;
  bool dry_run = false;
  bool wait = false;
  bool local = false;
  SystemOptions system;
};

int PrintProblems(const Host& host, const Problems& problems) {
  for (const std::string& line : problems.lines()) *host.err << line << '\n';
  *host.err << "kmosaic: " << problems.size() << (problems.size() == 1 ? " problem" : " problems")
            << "; nothing was submitted\n";
  return kExitBadInput;
}

std::string Limit(double value) { return value > 0 ? absl::StrCat(value) : "no limit"; }

int DryRun(const Host& host, const JobFile& file, OutputFormat output) {
  std::vector<PlannedItem> items = PlanItems(file.spec, file.tasks.size());
  const v1::Budget& budget = file.spec.budget();
  double count = static_cast<double>(items.size());
  if (output != OutputFormat::kTable) {
    nlohmann::ordered_json json = {{"spec", ToJson(file.spec)},
                                   {"conversations", nlohmann::ordered_json::array()}};
    json["spec"]["endpoint"].erase("recordings");
    for (const PlannedItem& item : items) {
      json["conversations"].push_back({{"task", file.tasks[item.task].spec.id()},
                                       {"views", ViewSetName(file.spec.views(item.views))},
                                       {"sample", item.sample}});
    }
    PrintJson(*host.out, output, json);
    return kExitDone;
  }
  std::map<std::string, int> by_views;
  for (const PlannedItem& item : items) ++by_views[ViewSetName(file.spec.views(item.views))];
  Table table({{"VIEWS"}, {"CONVERSATIONS", Align::kRight}});
  for (const auto& [views, number] : by_views) table.AddRow({views, absl::StrCat(number)});
  *host.out << file.path << ": " << file.tasks.size() << " tasks, " << items.size()
            << " conversations; nothing was submitted\n\n"
            << table.Render(host.TableWidth()) << "\nAt most, for all conversations together:\n"
            << "  replies  " << Limit(count * budget.turns()) << '\n'
            << "  tokens   " << Limit(count * static_cast<double>(budget.tokens())) << '\n'
            << "  US$      " << Limit(count * budget.cost_usd()) << '\n';
  return kExitDone;
}

int Submit(Host& host, const CommandLine& line, const SubmitArguments& arguments) {
  Problems problems;
  auto file = ReadJobFile(arguments.file, arguments.overrides, problems);
  if (!file) return PrintProblems(host, problems);
  for (const std::string& warning : file->warnings) *host.err << "warning: " << warning << '\n';
  if (arguments.dry_run) return DryRun(host, *file, line.output);

  std::string coordinator = line.coordinator;
  std::unique_ptr<TemporarySystem> system;
  if (arguments.local) {
    SystemOptions options = arguments.system;
    if (options.data.empty()) options.data = DefaultDataDirectory(host);
    auto started = TemporarySystem::Start(host, options);
    if (!started.ok()) return Fail(host, started.status());
    system = *std::move(started);
    coordinator = system->coordinator();
  }
  auto connection = FindCoordinator(host, coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  JobClient client(host, *std::move(connection));
  std::vector<v1::TaskSpec> tasks;
  for (const TaskFolder& task : file->tasks) tasks.push_back(task.spec);
  std::string request_id =
      arguments.request_id.empty() ? RandomId("request") : arguments.request_id;
  auto submitted = client.Submit(request_id, file->spec, tasks);
  if (!submitted.ok()) return Fail(host, submitted.status());
  const v1::Job& job = submitted->job();

  bool wait = arguments.wait || arguments.local;
  std::ostream& notes = wait ? *host.err : *host.out;
  if (line.output == OutputFormat::kTable || wait) {
    notes << (submitted->existed() ? "was already submitted: " : "submitted: ") << job.id() << " ("
          << job.spec().name() << ", " << job.counts().total() << " conversations)\n";
    if (!wait) notes << "Follow it with: kmosaic job watch " << job.id() << '\n';
    notes << std::flush;
  } else {
    PrintJson(*host.out, line.output, {{"job", JobJson(job)}, {"existed", submitted->existed()}});
  }
  return wait ? FollowToEnd(host, client, job, line.output) : kExitDone;
}

}  // namespace

void AddSubmitCommand(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<SubmitArguments>();
  CLI::App* command = app.add_subcommand("submit", "Check a job file and submit it");
  command->add_option("JOB.yaml", arguments->file, "job file (docs/tasks.md)")
      ->required()
      ->type_name("");
  command
      ->add_option("--set", arguments->overrides,
                   "override a key, say endpoint.model=NAME; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->add_flag("--dry-run", arguments->dry_run,
                    "check everything and say what would be submitted");
  command->add_flag("--wait", arguments->wait,
                    "wait for the end; exit code 1 when not all are verified");
  command
      ->add_option("--request-id", arguments->request_id,
                   "submitting twice under one id makes one job (default: a new one)")
      ->type_name("ID");
  command->add_flag("--local", arguments->local,
                    "start a system for this job and end it afterwards");
  command
      ->add_option("--data", arguments->system.data,
                   "data directory of --local (default: as for up)")
      ->type_name("DIR");
  command->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Submit(host, line, *arguments); };
  });
}

}  // namespace kmosaic
