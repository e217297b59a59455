#include "cli/jobs/job_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/numbers.h"
#include "cli/output/table.h"
#include "cli/output/wire_json.h"

namespace kmosaic {
namespace {

absl::Time FromWire(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

uint64_t Tokens(const v1::Usage& usage) {
  return usage.prompt_tokens() + usage.completion_tokens();
}

uint64_t Ended(const v1::JobCounts& counts) {
  return counts.done() + counts.failed() + counts.cancelled() + counts.dead();
}

// Ended without a verified solution.
uint64_t NotVerified(const v1::JobCounts& counts) {
  return Ended(counts) - std::min(Ended(counts), counts.verified());
}

bool IsFinal(v1::ItemState state) {
  return state == v1::ITEM_STATE_DONE || state == v1::ITEM_STATE_FAILED ||
         state == v1::ITEM_STATE_CANCELLED || state == v1::ITEM_STATE_DEAD;
}

std::string ItemOutcome(const Host& host, const v1::Item& item) {
  if (item.state() != v1::ITEM_STATE_DONE) {
    Colour colour = IsFinal(item.state()) ? Colour::kRed : Colour::kYellow;
    return Coloured(host, colour, ItemStateName(item.state()));
  }
  std::string verdict = VerdictName(item.result().verdict());
  if (item.result().verdict() == v1::VERDICT_UNSPECIFIED) verdict = "no solution";
  return Coloured(host, item.result().verified() ? Colour::kGreen : Colour::kRed, verdict);
}

std::string Gain(const v1::Item& item) {
  const v1::ItemResult& result = item.result();
  if (result.has_speedup()) return absl::StrFormat("%.2fx speedup", result.speedup());
  if (result.has_work_ratio()) return absl::StrFormat("%.2f of work", result.work_ratio());
  return "";
}

std::string Why(const v1::Item& item) {
  if (item.result().verified()) return "";
  if (!item.result().reason().empty()) return item.result().reason();
  return item.last_error();
}

std::string Money(double usd) { return usd > 0 ? absl::StrFormat("$%.4f", usd) : ""; }

}  // namespace

bool AllVerified(const v1::JobCounts& counts) {
  return counts.total() > 0 && counts.verified() == counts.total();
}

std::string JobTable(const Host& host, const std::vector<v1::Job>& jobs, absl::Time now) {
  Table table({{"JOB"},
               {"NAME"},
               {"STATE"},
               {"ENDED", Align::kRight},
               {"VERIFIED", Align::kRight},
               {"NOT", Align::kRight},
               {"TOKENS", Align::kRight},
               {"CREATED"}});
  for (const v1::Job& job : jobs) {
    const v1::JobCounts& counts = job.counts();
    table.AddRow({job.id(), job.spec().name(), JobStateName(job.state()),
                  absl::StrCat(Ended(counts), "/", counts.total()), absl::StrCat(counts.verified()),
                  absl::StrCat(NotVerified(counts)),
                  ShortCount(static_cast<double>(Tokens(counts.usage()))),
                  Ago(FromWire(job.created()), now)});
  }
  return table.Render(host.TableWidth());
}

std::string JobSummary(const Host& host, const v1::Job& job, absl::Time now) {
  const v1::JobSpec& spec = job.spec();
  const v1::JobCounts& c = job.counts();
  std::vector<std::string> view_sets;
  for (const v1::ViewSet& views : spec.views()) view_sets.push_back(ViewSetName(views));
  std::string endpoint = absl::StrCat(
      spec.endpoint().name(),
      spec.endpoint().url().empty() ? "" : absl::StrCat(" (", spec.endpoint().url(), ")"),
      spec.endpoint().model().empty() ? "" : absl::StrCat(", model ", spec.endpoint().model()));
  std::string device = spec.evaluation().device() == v1::DEVICE_KIND_UNSPECIFIED
                           ? "auto"
                           : DeviceName(spec.evaluation().device());
  std::string text = absl::StrCat(
      Coloured(host, Colour::kBold, absl::StrCat(job.id(), "  ", spec.name())), "\n",
      "  state     ", JobStateName(job.state()), ", created ", Ago(FromWire(job.created()), now),
      job.has_finished() ? absl::StrCat(", took ", ShortDuration(FromWire(job.finished()) -
                                                                 FromWire(job.created())))
                         : "",
      "\n  items     ", c.total(), ": ", c.verified(), " verified, ", NotVerified(c),
      " ended without, ", c.leased(), " running, ", c.ready(), " ready, ", c.delayed(),
      " delayed\n");
  if (c.failed() + c.dead() + c.cancelled() > 0) {
    absl::StrAppend(&text, "            ", c.failed(), " failed, ", c.dead(), " dead, ",
                    c.cancelled(), " cancelled\n");
  }
  absl::StrAppend(&text, "  views     ", absl::StrJoin(view_sets, ", "), "\n  endpoint  ", endpoint,
                  "\n  device    ", device, "\n  usage     ", c.usage().requests(), " requests, ",
                  ShortCount(static_cast<double>(Tokens(c.usage()))), " tokens",
                  c.usage().estimated() ? " (estimated)" : "", c.usage().cost_usd() > 0 ? ", " : "",
                  Money(c.usage().cost_usd()), "\n");
  if (!job.unsatisfiable().empty()) {
    absl::StrAppend(&text, "  waits     ", Coloured(host, Colour::kYellow, job.unsatisfiable()),
                    "\n");
  }
  return text;
}

std::string ItemTable(const Host& host, const std::vector<v1::Item>& items) {
  bool samples = false;
  bool gain = false;
  bool why = false;
  bool cost = false;
  for (const v1::Item& item : items) {
    samples = samples || item.sample() > 0;
    gain = gain || !Gain(item).empty();
    why = why || !Why(item).empty();
    cost = cost || item.result().usage().cost_usd() > 0;
  }
  std::vector<Table::Column> columns = {{"ITEM", Align::kRight}, {"TASK"}, {"VIEWS"}};
  if (samples) columns.push_back({"SAMPLE", Align::kRight});
  columns.insert(
      columns.end(),
      {{"VERDICT"}, {"STOPPED BY"}, {"TURNS", Align::kRight}, {"TOKENS", Align::kRight}});
  if (cost) columns.push_back({"COST", Align::kRight});
  if (gain) columns.push_back({"GAIN", Align::kRight});
  if (why) columns.push_back({"REASON"});
  Table table(columns);
  for (const v1::Item& item : items) {
    const v1::ItemResult& result = item.result();
    std::vector<std::string> row = {absl::StrCat(item.id().number()), item.task(),
                                    ViewSetName(item.views())};
    if (samples) row.push_back(absl::StrCat(item.sample()));
    row.push_back(ItemOutcome(host, item));
    bool ended = item.has_result();
    row.push_back(ended ? StopReasonName(result.stop_reason()) : "");
    row.push_back(ended ? absl::StrCat(result.turns()) : "");
    row.push_back(ended ? ShortCount(static_cast<double>(Tokens(result.usage()))) : "");
    if (cost) row.push_back(Money(result.usage().cost_usd()));
    if (gain) row.push_back(Gain(item));
    if (why) row.push_back(Why(item));
    table.AddRow(std::move(row));
  }
  return table.Render(host.TableWidth());
}

std::string ItemTotals(const std::vector<v1::Item>& items) {
  uint64_t verified = 0;
  uint64_t turns = 0;
  uint64_t tokens = 0;
  double usd = 0;
  bool work = false;
  bool estimated = false;
  for (const v1::Item& item : items) {
    verified += item.result().verified() ? 1 : 0;
    turns += item.result().turns();
    tokens += Tokens(item.result().usage());
    usd += item.result().usage().cost_usd();
    work = work || (item.result().has_work_ratio() && !item.result().has_speedup());
    estimated = estimated || item.result().usage().estimated();
  }
  std::string text = absl::StrCat(
      items.size(), items.size() == 1 ? " conversation: " : " conversations: ", verified,
      " verified, ", items.size() - verified, " not; ", turns, " turns, ",
      ShortCount(static_cast<double>(tokens)), estimated ? " tokens (estimated)" : " tokens",
      usd > 0 ? ", " : "", Money(usd), "\n");
  if (work) {
    absl::StrAppend(&text,
                    "Work is what the emulated device counted for the best version over the first "
                    "verified one: "
                    "an estimate, no time and no speedup.\n");
  }
  return text;
}

Progress JobProgress(const std::string& name, const v1::JobCounts& counts,
                     const std::string& unsatisfiable) {
  Progress progress;
  progress.title = name;
  progress.done = Ended(counts);
  progress.total = counts.total();
  progress.details.push_back(absl::StrCat("verified ", counts.verified()));
  if (NotVerified(counts) > 0)
    progress.details.push_back(absl::StrCat("not ", NotVerified(counts)));
  if (counts.leased() > 0) progress.details.push_back(absl::StrCat("running ", counts.leased()));
  progress.details.push_back(
      absl::StrCat("tokens ", ShortCount(static_cast<double>(Tokens(counts.usage())))));
  if (!unsatisfiable.empty()) progress.details.push_back(absl::StrCat("waits: ", unsatisfiable));
  return progress;
}

std::string EventLine(const v1::JobEvent& event) {
  std::string time = absl::FormatTime("%H:%M:%S", FromWire(event.at()), absl::LocalTimeZone());
  if (!event.has_item()) return absl::StrCat(time, "  job ", JobStateName(event.job_state()));
  const v1::ItemChange& change = event.item();
  std::string text = absl::StrCat(time, "  ", change.id().number(), " ", change.task(), "  ");
  if (change.from() == change.to()) {
    absl::StrAppend(&text, ItemStateName(change.to()), " step ", change.step());
  } else {
    absl::StrAppend(&text, ItemStateName(change.from()), " -> ", ItemStateName(change.to()));
  }
  if (change.verdict() != v1::VERDICT_UNSPECIFIED)
    absl::StrAppend(&text, "  ", VerdictName(change.verdict()));
  if (!change.reason().empty()) absl::StrAppend(&text, "  ", change.reason());
  return text;
}

nlohmann::ordered_json JobJson(const v1::Job& job) {
  nlohmann::ordered_json json = ToJson(job);
  if (job.has_spec() && job.spec().has_endpoint()) {
    auto& endpoint = json["spec"]["endpoint"];
    endpoint.erase("recordings");
    endpoint["recordings_bytes"] = job.spec().endpoint().recordings().size();
  }
  return json;
}

}  // namespace kmosaic
