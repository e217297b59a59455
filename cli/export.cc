// kmosaic export: what jobs produced, as JSON Lines.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/dataset/dataset_writer.h"
#include "cli/output/live_line.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/program/connection.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "kernelmosaic/v1/dataset.grpc.pb.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

struct ExportArguments {
  std::vector<std::string> jobs;
  std::string format = "trajectory";
  std::string out;
  bool include_emulated = false;
  bool include_unverified = false;
  double min_speedup = -1;
};

v1::ExportRequest Request(const ExportArguments& arguments) {
  v1::ExportRequest request;
  for (const std::string& job : arguments.jobs) request.add_jobs(job);
  request.set_format(arguments.format == "direct" ? v1::EXPORT_FORMAT_DIRECT
                                                  : v1::EXPORT_FORMAT_TRAJECTORY);
  request.set_include_emulated(arguments.include_emulated);
  request.set_include_unverified(arguments.include_unverified);
  if (arguments.min_speedup >= 0) request.set_min_speedup(arguments.min_speedup);
  return request;
}

// Rows into the writer; the summary that ended the stream.
absl::StatusOr<v1::ExportSummary> Receive(Host& host, const Connection& connection,
                                          const v1::ExportRequest& request, DatasetWriter& writer) {
  auto stub = v1::DatasetService::NewStub(connection.channel);
  grpc::ClientContext context;
  Interrupt::Scope scope(*host.interrupt, [&context] { context.TryCancel(); });
  auto stream = stub->Export(&context, request);
  LiveLine::Options options;
  options.terminal = host.err_is_terminal;
  options.width = host.columns;
  LiveLine line(*host.err, *host.clock, options);
  Progress progress;
  progress.title = "export";
  v1::ExportResponse response;
  std::optional<v1::ExportSummary> summary;
  absl::Status written;
  while (written.ok() && stream->Read(&response)) {
    if (response.has_summary()) summary = response.summary();
    if (response.has_row()) {
      written = writer.Add(response.row());
      ++progress.done;
      line.Update(progress);
    }
  }
  line.Clear();
  if (!written.ok()) context.TryCancel();
  absl::Status status = FromGrpc(stream->Finish());
  if (!written.ok()) return written;
  if (!status.ok()) return Explain(connection, status);
  if (!summary)
    return absl::DataLossError("the export ended without a summary; nothing was written");
  if (summary->rows() != progress.done) {
    return absl::DataLossError(absl::StrCat("the coordinator counted ", summary->rows(),
                                            " rows and ", progress.done,
                                            " arrived; nothing was written"));
  }
  return *summary;
}

void Report(const Host& host, const ExportArguments& arguments, const DatasetCounts& counts,
            const v1::ExportSummary& summary, OutputFormat output) {
  std::map<std::string, uint64_t> dropped(summary.dropped().begin(), summary.dropped().end());
  if (output != OutputFormat::kTable) {
    PrintJson(*host.out, output,
              {{"out", arguments.out},
               {"format", arguments.format},
               {"items", summary.items()},
               {"rows", summary.rows()},
               {"emulated", counts.emulated},
               {"unverified", counts.unverified},
               {"splits", counts.rows},
               {"dropped", dropped}});
    return;
  }
  *host.out << summary.rows() << " rows of " << summary.items() << " conversations in "
            << arguments.out << '\n';
  Table table({{"FILE"}, {"ROWS", Align::kRight}});
  for (const auto& [split, rows] : counts.rows)
    table.AddRow({split + ".jsonl", absl::StrCat(rows)});
  if (!table.empty()) *host.out << '\n' << table.Render(host.TableWidth());
  if (counts.emulated + counts.unverified > 0) *host.out << '\n';
  if (counts.emulated > 0) {
    *host.out << counts.emulated
              << " of them were verified on the emulated device only and say so.\n";
  }
  if (counts.unverified > 0)
    *host.out << counts.unverified << " of them hold no verified solution and say so.\n";
  if (dropped.empty()) return;
  Table left_out({{"LEFT OUT BECAUSE"}, {"CONVERSATIONS", Align::kRight}});
  for (const auto& [reason, number] : dropped) left_out.AddRow({reason, absl::StrCat(number)});
  *host.out << '\n' << left_out.Render(host.TableWidth());
  if (summary.rows() == 0 && dropped.count("emulated") != 0) {
    *host.out << "\nWhat only the emulated device verified is exported with --include-emulated.\n";
  }
}

int Export(Host& host, const CommandLine& line, const ExportArguments& arguments) {
  auto connection = FindCoordinator(host, line.coordinator);
  if (!connection.ok()) return Fail(host, connection.status());
  auto writer = DatasetWriter::Open(arguments.out);
  if (!writer.ok()) {
    Fail(host, writer.status());
    return kExitBadInput;
  }
  auto summary = Receive(host, *connection, Request(arguments), **writer);
  if (!summary.ok()) return Fail(host, summary.status());
  DatasetInfo info;
  info.format = arguments.format;
  info.jobs = arguments.jobs;
  info.include_emulated = arguments.include_emulated;
  info.include_unverified = arguments.include_unverified;
  info.min_speedup = arguments.min_speedup;
  info.created = host.clock->Wall();
  if (absl::Status status = (*writer)->Finish(info, *summary); !status.ok())
    return Fail(host, status);
  Report(host, arguments, (*writer)->counts(), *summary, line.output);
  return kExitDone;
}

}  // namespace

void AddExportCommand(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "Write what jobs produced as JSON Lines");
  command->add_option("JOB", arguments->jobs, "job ids")->required()->type_name("");
  command
      ->add_option("--format", arguments->format,
                   "trajectory (whole conversations) or direct (one turn)")
      ->check(CLI::IsMember({"trajectory", "direct"}).description(""))
      ->type_name("FORMAT")
      ->capture_default_str();
  command
      ->add_option("--out", arguments->out, "folder to write; an earlier export there is replaced")
      ->required()
      ->type_name("DIR");
  command->add_flag("--include-emulated", arguments->include_emulated,
                    "also what only the emulated device verified; each row says so");
  command->add_flag("--include-unverified", arguments->include_unverified,
                    "also conversations without a verified solution (trajectory only)");
  command
      ->add_option("--min-speedup", arguments->min_speedup,
                   "only solutions at least this much faster")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("X");
  command->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Export(host, line, *arguments); };
  });
}

}  // namespace kmosaic
