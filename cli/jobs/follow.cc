#include "cli/jobs/follow.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/jobs/job_view.h"
#include "cli/output/live_line.h"
#include "cli/output/print_json.h"
#include "cli/output/wire_json.h"
#include "cli/program/exit_code.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kAskAgain = absl::Seconds(5);

int Interrupted(const Host& host, const v1::Job& job) {
  *host.err << "kmosaic: interrupted; the job goes on without this command: kmosaic job watch "
            << job.id() << '\n';
  return kExitInterrupted;
}

}  // namespace

int FollowToEnd(Host& host, JobClient& client, const v1::Job& job, OutputFormat output) {
  LiveLine::Options options;
  options.terminal = host.err_is_terminal;
  options.width = host.columns;
  LiveLine line(*host.err, *host.clock, options);
  v1::JobCounts counts = job.counts();
  std::string waits = job.unsatisfiable();
  absl::Duration asked = host.clock->Steady();
  auto on_event = [&](const v1::JobEvent& event) {
    counts = event.counts();
    asked = host.clock->Steady();
    waits.clear();
    return true;
  };
  auto on_idle = [&] {
    // Events do not tell that no worker fits; a job that stands still is asked why.
    if (host.clock->Steady() - asked > kAskAgain) {
      asked = host.clock->Steady();
      if (auto now = client.Get(job.id()); now.ok()) waits = now->unsatisfiable();
    }
    line.Update(JobProgress(job.spec().name(), counts, waits));
  };
  absl::Status status = client.Watch(job.id(), 0, on_event, on_idle);
  line.Clear();
  if (host.interrupt->triggered()) return Interrupted(host, job);
  if (!status.ok()) return Fail(host, status);

  auto ended = client.Get(job.id());
  if (!ended.ok()) return Fail(host, ended.status());
  auto items = client.ListItems(job.id());
  if (!items.ok()) return Fail(host, items.status());
  if (output == OutputFormat::kTable) {
    *host.out << ItemTable(host, *items) << '\n' << ItemTotals(*items);
    if (ended->state() == v1::JOB_STATE_CANCELLED) *host.out << "The job was cancelled.\n";
  } else if (output == OutputFormat::kJson) {
    nlohmann::ordered_json json = {{"job", JobJson(*ended)},
                                   {"items", nlohmann::ordered_json::array()}};
    for (const v1::Item& item : *items) json["items"].push_back(ToJson(item));
    PrintJson(*host.out, output, json);
  } else {
    for (const v1::Item& item : *items) PrintJson(*host.out, output, ToJson(item));
  }
  return AllVerified(ended->counts()) ? kExitDone : kExitNo;
}

int PrintEvents(Host& host, JobClient& client, const v1::Job& job, uint64_t from_seq,
                OutputFormat output) {
  auto on_event = [&](const v1::JobEvent& event) {
    if (output == OutputFormat::kTable) {
      *host.out << EventLine(event) << std::endl;
    } else {
      PrintJson(*host.out, OutputFormat::kJsonl, ToJson(event));
    }
    return host.out->good();
  };
  absl::Status status = client.Watch(job.id(), from_seq, on_event, [] {});
  if (host.interrupt->triggered()) return Interrupted(host, job);
  // Whoever read the events has gone.
  if (!host.out->good()) return kExitDone;
  return status.ok() ? kExitDone : Fail(host, status);
}

}  // namespace kmosaic
