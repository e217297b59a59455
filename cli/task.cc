// kmosaic task: task folders, and single conversations of jobs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/jobs/conversation_view.h"
#include "cli/jobs/job_client.h"
#include "cli/output/live_line.h"
#include "cli/output/print_json.h"
#include "cli/output/wire_json.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/score/evaluation_flags.h"
#include "cli/score/score_client.h"
#include "cli/system/python_module.h"
#include "cli/taskfiles/task_folder.h"
#include "cli/tasklint/probes.h"

namespace kmosaic {
namespace {

struct TaskArguments {
  std::vector<std::string> names;
  std::vector<std::string> folders;
  bool only_static = false;
  EvaluationFlags evaluation;
};

int PrintProblems(const Host& host, const Problems& problems) {
  for (const std::string& line : problems.lines()) *host.err << line << '\n';
  return kExitBadInput;
}

// ITEM is a number, or a task's id when one conversation of the job is about it.
absl::StatusOr<v1::ItemDetail> FindItem(JobClient& client, const std::string& job,
                                        const std::string& item) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(item, &number)) return client.GetItem(job, number);
  auto items = client.ListItems(job);
  if (!items.ok()) return items.status();
  std::string numbers;
  for (const v1::Item& candidate : *items) {
    if (candidate.task() != item) continue;
    absl::StrAppend(&numbers, numbers.empty() ? "" : ", ", candidate.id().number());
    number = candidate.id().number();
  }
  if (numbers.empty()) {
    return absl::NotFoundError(absl::StrCat("job ", job, " has no conversation about \"", item,
                                            "\"; `kmosaic job show ", job, "` lists them"));
  }
  if (numbers.find(',') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("several conversations are about \"", item,
                                                   "\": ", numbers, "; give a number"));
  }
  return client.GetItem(job, number);
}

int WithItem(Host& host, const CommandLine& line, const std::vector<std::string>& names,
             const std::function<void(const v1::ItemDetail&)>& print) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  JobClient client(host, *std::move(connection));
  auto detail = FindItem(client, names[0], names[1]);
  if (!detail.ok()) return Fail(host, detail.status());
  print(*detail);
  return kExitDone;
}

int Show(Host& host, const CommandLine& line, const TaskArguments& arguments) {
  if (arguments.names.size() == 1) {
    Problems problems;
    auto task = ReadTaskFolder(arguments.names[0], problems);
    if (!task) return PrintProblems(host, problems);
    if (line.output == OutputFormat::kTable) {
      *host.out << TaskText(host, task->spec);
    } else {
      PrintJson(*host.out, line.output, ToJson(task->spec));
    }
    return kExitDone;
  }
  return WithItem(host, line, arguments.names, [&](const v1::ItemDetail& detail) {
    if (line.output == OutputFormat::kTable) {
      *host.out << ItemText(host, detail) << '\n' << TaskText(host, detail.task());
    } else {
      PrintJson(*host.out, line.output,
                {{"item", ToJson(detail.item())}, {"task", ToJson(detail.task())}});
    }
  });
}

int Conversation(Host& host, const CommandLine& line, const TaskArguments& arguments) {
  return WithItem(host, line, arguments.names, [&](const v1::ItemDetail& detail) {
    if (line.output == OutputFormat::kTable) {
      *host.out << ConversationText(host, detail);
    } else if (line.output == OutputFormat::kJson) {
      PrintJson(*host.out, line.output, ToJson(detail));
    } else {
      PrintJson(*host.out, line.output, ToJson(detail)["steps"]);
    }
  });
}

struct LintedTask {
  TaskFolder folder;
  std::vector<std::string> findings;
  // The first failed machine.
  absl::Status machine;
};

// Runs every probe of every task.
absl::Status RunProbes(Host& host, const Connection& connection, const v1::ScoreOptions& options,
                       std::vector<LintedTask>& tasks) {
  struct Planned {
    size_t task;
    Probe probe;
  };
  std::vector<Planned> planned;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const v1::Oracle& oracle = tasks[i].folder.spec.oracle();
    planned.push_back({i, SelfProbe(oracle)});
    for (Probe& probe : CheatProbes(oracle)) planned.push_back({i, std::move(probe)});
  }
  LiveLine::Options live;
  live.terminal = host.err_is_terminal;
  live.width = host.columns;
  LiveLine line(*host.err, *host.clock, live);
  Progress progress;
  progress.title = "lint";
  progress.total = planned.size();
  size_t next = 0;
  ScoreClient client(host, connection, {});
  ScoreClient::Callbacks callbacks;
  callbacks.next = [&]() -> std::optional<v1::ScoreRequest> {
    if (next == planned.size()) return std::nullopt;
    const Planned& plan = planned[next++];
    const v1::TaskSpec& spec = tasks[plan.task].folder.spec;
    v1::ScoreRequest request;
    request.set_id(absl::StrCat("lint-", spec.id(), "-", plan.probe.name));
    *request.mutable_oracle() = spec.oracle();
    // The probes are Python whatever contract the task has.
    request.mutable_oracle()->clear_entry();
    request.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
    request.mutable_solution()->set_source(plan.probe.source);
    *request.mutable_evaluation() = options;
    return request;
  };
  callbacks.on_report = [&](uint64_t number, const v1::EvaluationReport& report) {
    ++progress.done;
    LintedTask& task = tasks[planned[number].task];
    std::string finding;
    absl::Status status = JudgeProbe(planned[number].probe, report, finding);
    if (!status.ok() && task.machine.ok()) task.machine = status;
    // A reference that does not run says so in every probe.
    bool known =
        std::find(task.findings.begin(), task.findings.end(), finding) != task.findings.end();
    if (!finding.empty() && !known) task.findings.push_back(finding);
  };
  callbacks.on_idle = [&] { line.Update(progress); };
  return client.Run(callbacks);
}

int Lint(Host& host, const CommandLine& line, const TaskArguments& arguments) {
  Problems problems;
  std::vector<LintedTask> tasks;
  for (const std::string& folder : arguments.folders) {
    if (auto task = ReadTaskFolder(folder, problems)) tasks.push_back({*std::move(task), {}, {}});
  }
  for (const std::string& problem : problems.lines()) *host.err << problem << '\n';
  bool run = !arguments.only_static && !tasks.empty();
  if (run) {
    auto options = ScoreOptionsOf(arguments.evaluation);
    if (!options.ok()) return Fail(host, options.status());
    std::unique_ptr<TemporarySystem> system;
    auto connection = ConnectForEvaluation(host, line, arguments.evaluation, system);
    if (!connection.ok()) return Fail(host, connection.status());
    absl::Status status = RunProbes(host, *connection, *options, tasks);
    if (!status.ok()) return Fail(host, status);
  }
  bool good = problems.empty();
  int machine = kExitDone;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const LintedTask& task : tasks) {
    good = good && task.findings.empty();
    if (line.output != OutputFormat::kTable) {
      json.push_back({{"task", task.folder.spec.id()},
                      {"folder", task.folder.path},
                      {"ran", run && task.machine.ok()},
                      {"findings", task.findings}});
    } else {
      std::string verdict = task.findings.empty() ? Coloured(host, Colour::kGreen, "ok")
                                                  : Coloured(host, Colour::kRed, "not in order");
      *host.out << task.folder.path << ": " << verdict
                << (run ? "" : " (files only; nothing was run)") << '\n';
      for (const std::string& finding : task.findings) *host.out << "  " << finding << '\n';
    }
    if (!task.machine.ok()) machine = Fail(host, Annotate(task.machine, task.folder.path));
  }
  if (line.output != OutputFormat::kTable) PrintJson(*host.out, line.output, json);
  if (!problems.empty()) return kExitBadInput;
  if (machine != kExitDone) return machine;
  return good ? kExitDone : kExitNo;
}

struct GenerateArguments {
  std::string out;
  int count = 100;
  int seed = 0;
  std::string families;
  std::string without;
  bool list = false;
};

int Generate(Host& host, const GenerateArguments& arguments) {
  std::vector<std::string> passed = {absl::StrCat("--count=", arguments.count),
                                     absl::StrCat("--seed=", arguments.seed),
                                     absl::StrCat("--families=", arguments.families),
                                     absl::StrCat("--except=", arguments.without)};
  if (arguments.list) passed.push_back("--list");
  if (!arguments.out.empty()) passed.push_back(arguments.out);
  return RunPythonModule(host, "generate", passed);
}

void AddGenerateCommand(CLI::App& task, CommandLine& line) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* generate =
      task.add_subcommand("generate", "Make folders of tasks from families of operators");
  generate->add_option("FOLDER", arguments->out, "where to write; nothing may be there")
      ->type_name("");
  generate->add_option("--count", arguments->count, "how many")->capture_default_str();
  generate->add_option("--seed", arguments->seed, "same seed, same tasks")->capture_default_str();
  generate->add_option("--families", arguments->families, "only these, comma-separated");
  generate->add_option("--except", arguments->without, "not these, comma-separated");
  generate->add_flag("--list", arguments->list, "print the families and stop");
  generate->callback([arguments, &line] {
    line.action = [arguments](Host& host) { return Generate(host, *arguments); };
  });
}

}  // namespace

void AddTaskCommands(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<TaskArguments>();
  CLI::App* task = app.add_subcommand("task", "Show, read and check tasks");
  task->require_subcommand(1);
  CLI::App* show =
      task->add_subcommand("show", "A task folder (FOLDER), or a conversation's task (JOB ITEM)");
  show->add_option("NAMES", arguments->names, "FOLDER, or JOB and ITEM (a number or a task's id)")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  show->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Show(host, line, *arguments); };
  });
  CLI::App* conversation =
      task->add_subcommand("conversation", "What was said in a conversation, and every verdict");
  conversation->add_option("JOB ITEM", arguments->names, "job id, and a number or a task's id")
      ->required()
      ->expected(2)
      ->type_name("");
  conversation->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Conversation(host, line, *arguments); };
  });
  AddGenerateCommand(*task, line);
  CLI::App* lint = task->add_subcommand("lint", "Check that tasks mean something (docs/tasks.md)");
  lint->add_option("FOLDER", arguments->folders, "task folders")->required()->type_name("");
  lint->add_flag("--static", arguments->only_static, "check the files only; run nothing");
  AddEvaluationFlags(*lint, arguments->evaluation);
  lint->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Lint(host, line, *arguments); };
  });
}

}  // namespace kmosaic
