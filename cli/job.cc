// kmosaic job: what was submitted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/follow.h"
#include "cli/jobs/job_client.h"
#include "cli/jobs/job_view.h"
#include "cli/output/print_json.h"
#include "cli/output/wire_json.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/program/refresh.h"

namespace kmosaic {
namespace {

using nlohmann::ordered_json;

struct JobArguments {
  std::vector<std::string> ids;
  bool watch = false;
  bool events = false;
  uint64_t from_seq = 0;
  std::vector<std::string> states;
};

absl::StatusOr<std::unique_ptr<JobClient>> Client(const Host& host, const CommandLine& line) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return connection.status();
  return std::make_unique<JobClient>(host, *std::move(connection));
}

int List(Host& host, const CommandLine& line, bool watch) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  return Refresh(host, watch, [&]() -> absl::Status {
    auto jobs = (*client)->List();
    if (!jobs.ok()) return jobs.status();
    if (line.output != OutputFormat::kTable) {
      ordered_json json = ordered_json::array();
      for (const v1::Job& job : *jobs) json.push_back(JobJson(job));
      PrintJson(*host.out, line.output, json);
    } else if (jobs->empty()) {
      *host.out << "There is no job yet. kmosaic submit JOB.yaml makes one.\n";
    } else {
      *host.out << JobTable(host, *jobs, host.clock->Wall());
    }
    return absl::OkStatus();
  });
}

int Show(Host& host, const CommandLine& line, const JobArguments& arguments) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  return Refresh(host, arguments.watch, [&]() -> absl::Status {
    ordered_json json = ordered_json::array();
    for (const std::string& id : arguments.ids) {
      auto job = (*client)->Get(id);
      if (!job.ok()) return job.status();
      auto items = (*client)->ListItems(id);
      if (!items.ok()) return items.status();
      if (line.output == OutputFormat::kTable) {
        *host.out << JobSummary(host, *job, host.clock->Wall()) << '\n' << ItemTable(host, *items);
        continue;
      }
      ordered_json one = JobJson(*job);
      one["items"] = ordered_json::array();
      for (const v1::Item& item : *items) one["items"].push_back(ToJson(item));
      json.push_back(std::move(one));
    }
    // One job asked for is one object.
    if (line.output != OutputFormat::kTable) {
      PrintJson(*host.out, line.output, json.size() == 1 ? json[0] : json);
    }
    return absl::OkStatus();
  });
}

int Watch(Host& host, const CommandLine& line, const JobArguments& arguments) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  auto job = (*client)->Get(arguments.ids[0]);
  if (!job.ok()) return Fail(host, job.status());
  if (arguments.events || line.output != OutputFormat::kTable) {
    return PrintEvents(host, **client, *job, arguments.from_seq, line.output);
  }
  return FollowToEnd(host, **client, *job, line.output);
}

// Applies `change` to each job and says what it is now.
int Change(Host& host, const CommandLine& line, const std::vector<std::string>& ids,
           const std::string& done,
           const std::function<absl::StatusOr<v1::Job>(JobClient&, const std::string&)>& change) {
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  int worst = kExitDone;
  ordered_json json = ordered_json::array();
  for (const std::string& id : ids) {
    auto job = change(**client, id);
    if (!job.ok()) {
      worst = std::max(worst, Fail(host, job.status()));
      continue;
    }
    if (line.output == OutputFormat::kTable) {
      *host.out << id << ' ' << done << " (" << JobStateName(job->state()) << ")\n";
    } else {
      json.push_back(JobJson(*job));
    }
  }
  if (line.output != OutputFormat::kTable) PrintJson(*host.out, line.output, json);
  return worst;
}

int Retry(Host& host, const CommandLine& line, const JobArguments& arguments) {
  std::vector<v1::ItemState> states;
  for (const std::string& name : arguments.states) states.push_back(*ParseItemState(name));
  auto client = Client(host, line);
  if (!client.ok()) return Fail(host, client.status());
  for (const std::string& id : arguments.ids) {
    auto retried = (*client)->Retry(id, states);
    if (!retried.ok()) return Fail(host, retried.status());
    if (line.output == OutputFormat::kTable) {
      *host.out << id << ": " << *retried << " conversations are ready again\n";
    } else {
      PrintJson(*host.out, line.output, {{"job", id}, {"retried", *retried}});
    }
  }
  return kExitDone;
}

}  // namespace

void AddJobCommands(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<JobArguments>();
  CLI::App* job = app.add_subcommand("job", "List, watch and steer jobs");
  job->require_subcommand(1);
  auto add = [&](const std::string& name, const std::string& help,
                 const std::function<int(Host&)>& action) {
    CLI::App* command = job->add_subcommand(name, help);
    command->callback([&line, action] { line.action = action; });
    return command;
  };
  auto with_ids = [arguments](CLI::App* command) {
    command->add_option("ID", arguments->ids, "job ids")->required()->type_name("");
    return command;
  };
  auto* list = add("list", "All jobs, the newest first",
                   [arguments, &line](Host& host) { return List(host, line, arguments->watch); });
  list->add_flag("-w,--watch", arguments->watch, "again every two seconds");
  auto* show = with_ids(add("show", "A job and its conversations", [arguments, &line](Host& host) {
    return Show(host, line, *arguments);
  }));
  show->add_flag("-w,--watch", arguments->watch, "again every two seconds");
  auto* watch =
      with_ids(add("watch", "Follow a job until it is finished",
                   [arguments, &line](Host& host) { return Watch(host, line, *arguments); }));
  watch->get_option("ID")->expected(1);
  watch->add_flag("--events", arguments->events,
                  "print each event as a line instead of the live bar");
  watch
      ->add_option("--from-seq", arguments->from_seq,
                   "first event wanted (with --events or -o jsonl)")
      ->type_name("N");
  using Verb = absl::StatusOr<v1::Job> (JobClient::*)(const std::string&);
  auto change = [&](const std::string& name, const std::string& help, const std::string& done,
                    Verb verb) {
    with_ids(add(name, help, [arguments, &line, done, verb](Host& host) {
      return Change(
          host, line, arguments->ids, done,
          [verb](JobClient& client, const std::string& id) { return (client.*verb)(id); });
    }));
  };
  change("pause", "Start no further conversation of a job", "is paused", &JobClient::Pause);
  change("resume", "Go on with a paused job", "goes on", &JobClient::Resume);
  change("cancel", "End a job; what it has is kept", "is cancelled", &JobClient::Cancel);
  auto* retry =
      with_ids(add("retry", "Try failed conversations again",
                   [arguments, &line](Host& host) { return Retry(host, line, *arguments); }));
  retry
      ->add_option("--state", arguments->states,
                   "which ones: failed, dead, cancelled or done (default: failed and dead)")
      ->check(CLI::IsMember({"failed", "dead", "cancelled", "done"}).description(""))
      ->allow_extra_args(false)
      ->type_name("STATE");
  change("delete", "Remove a job and all its records", "is deleted", &JobClient::Delete);
}

}  // namespace kmosaic
