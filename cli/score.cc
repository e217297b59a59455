// kmosaic score: verdicts about somebody's kernels.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/output/live_line.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"
#include "cli/score/evaluation_flags.h"
#include "cli/score/result_file.h"
#include "cli/score/score_client.h"
#include "cli/score/score_report.h"
#include "cli/score/score_row.h"
#include "cli/taskfiles/entry_prototype.h"
#include "cli/taskfiles/task_folder.h"
#include "cli/taskfiles/text_file.h"

namespace kmosaic {
namespace {

// Up to so many candidates a table has a row for each.
constexpr size_t kRowsOfTable = 40;

struct ScoreArguments {
  std::string file;
  std::string reference;
  std::string task;
  std::vector<std::string> solutions;
  std::string entry;
  std::vector<std::string> bindings;
  std::string out;
  uint64_t limit = 0;
  EvaluationFlags evaluation;
};

// Where candidates come from: a file, or the few that were named.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::optional<ScoreRow> Next() = 0;
  // 0: not known.
  virtual uint64_t total() const = 0;
};

class FileSource : public Source {
 public:
  FileSource(std::istream& input, const std::string& name, uint64_t limit, Problems& problems)
      : total_(CountRows(input, limit)), file_(input, name, limit), problems_(problems) {}
  std::optional<ScoreRow> Next() override { return file_.Next(problems_); }
  uint64_t total() const override { return total_; }

 private:
  uint64_t total_;
  ScoreFile file_;
  Problems& problems_;
};

class ListSource : public Source {
 public:
  explicit ListSource(std::vector<ScoreRow> rows) : rows_(std::move(rows)) {}
  std::optional<ScoreRow> Next() override {
    if (next_ == rows_.size()) return std::nullopt;
    return rows_[next_++];
  }
  uint64_t total() const override { return rows_.size(); }

 private:
  std::vector<ScoreRow> rows_;
  size_t next_ = 0;
};

// The oracle that --task or --reference with --entry and --bind describe.
std::optional<v1::Oracle> NamedOracle(const ScoreArguments& arguments, Problems& problems) {
  if (!arguments.task.empty()) {
    auto task = ReadTaskFolder(arguments.task, problems);
    if (!task) return std::nullopt;
    return task->spec.oracle();
  }
  auto text = ReadTextFile(arguments.reference, kMaxTaskFileBytes, problems);
  if (!text) return std::nullopt;
  v1::Oracle oracle;
  oracle.set_reference(*text);
  if (arguments.entry.empty()) return oracle;
  oracle.mutable_entry()->set_prototype(arguments.entry);
  for (const std::string& binding : arguments.bindings) {
    size_t equals = binding.find('=');
    if (equals == 0 || equals == std::string::npos) {
      problems.Add({absl::StrCat("--bind ", binding)}, "write NAME=TARGET, say x=input[0]");
      continue;
    }
    (*oracle.mutable_entry()->mutable_bindings())[binding.substr(0, equals)] =
        binding.substr(equals + 1);
  }
  for (const std::string& wrong : CheckEntry(oracle.entry())) problems.Add({"--entry"}, wrong);
  return oracle;
}

std::vector<ScoreRow> NamedRows(const ScoreArguments& arguments, Problems& problems) {
  std::vector<ScoreRow> rows;
  auto oracle = NamedOracle(arguments, problems);
  for (const std::string& path : arguments.solutions) {
    auto text = ReadTextFile(path, kMaxTaskFileBytes, problems);
    if (!text || !oracle) continue;
    ScoreRow row;
    row.id = std::filesystem::path(path).filename().string();
    *row.request.mutable_oracle() = *oracle;
    bool cuda = absl::EndsWith(path, ".cu");
    if (cuda && !oracle->has_entry()) {
      problems.Add(
          {path},
          "a .cu solution needs its host entry: --entry \"void NAME(...)\" with --bind, or a "
          "--task with contract: cuda");
      continue;
    }
    row.request.mutable_solution()->set_contract(cuda ? v1::CONTRACT_CUDA : v1::CONTRACT_MODELNEW);
    row.request.mutable_solution()->set_source(*text);
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::Status CheckArguments(const ScoreArguments& arguments) {
  bool file = !arguments.file.empty();
  bool named = !arguments.solutions.empty();
  if (file == named) {
    return absl::InvalidArgumentError(
        "give either FILE.jsonl, or --solution with --reference or --task");
  }
  if (named && arguments.reference.empty() == arguments.task.empty()) {
    return absl::InvalidArgumentError(
        "--solution needs either --reference FILE.py or --task FOLDER");
  }
  if (file && !(arguments.reference.empty() && arguments.task.empty() && arguments.entry.empty())) {
    return absl::InvalidArgumentError("the rows of FILE.jsonl carry their own reference and entry");
  }
  return absl::OkStatus();
}

// Takes the verdicts as they come and says them.
class Results {
 public:
  Results(Host& host, OutputFormat output, ResultFile* file, uint64_t total)
      : host_(host), output_(output), file_(file), line_(*host.err, *host.clock, Options(host)) {
    progress_.title = "score";
    progress_.total = total;
  }

  void Expect(std::string id, std::string label) {
    expected_.push_back({std::move(id), std::move(label)});
  }

  void Take(uint64_t number, const v1::EvaluationReport& report) {
    const auto& [id, label] = expected_[number];
    tally_.Add(label, report);
    nlohmann::ordered_json json;
    if (file_ != nullptr || output_ != OutputFormat::kTable) json = ScoreJson(id, label, report);
    if (file_ != nullptr && written_.ok()) written_ = file_->Append(json);
    if (output_ == OutputFormat::kJsonl) {
      line_.Clear();
      PrintJson(*host_.out, output_, json);
    } else if (output_ == OutputFormat::kJson) {
      all_.push_back(std::move(json));
    } else if (reports_.size() <= kRowsOfTable) {
      reports_.emplace_back(number, report);
    }
  }

  void ShowProgress() {
    progress_.done = tally_.total();
    progress_.details = tally_.Details();
    line_.Update(progress_);
  }

  // Tables or JSON at the end; with one candidate all about it.
  void Finish(absl::Duration elapsed) {
    line_.Clear();
    if (output_ == OutputFormat::kJson) {
      PrintJson(*host_.out, output_, {{"results", all_}, {"summary", tally_.ToJson(elapsed)}});
    }
    if (output_ == OutputFormat::kJsonl) {
      *host_.err << tally_.Summary(elapsed);
    }
    if (output_ != OutputFormat::kTable || tally_.total() == 0) return;
    if (tally_.total() == 1) {
      *host_.out << ReportText(host_, expected_[0].first, reports_[0].second);
      return;
    }
    if (reports_.size() <= kRowsOfTable) PrintRows();
    *host_.out << tally_.Tables(host_) << '\n' << tally_.Summary(elapsed);
  }

  const ScoreTally& tally() const { return tally_; }
  const absl::Status& written() const { return written_; }

 private:
  static LiveLine::Options Options(const Host& host) {
    LiveLine::Options options;
    options.terminal = host.err_is_terminal;
    options.width = host.columns;
    return options;
  }

  void PrintRows() {
    std::sort(reports_.begin(), reports_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Table table({{"CANDIDATE"}, {"VERDICT"}, {"REASON"}});
    for (const auto& [number, report] : reports_) {
      table.AddRow({expected_[number].first, VerdictName(report.verdict()), report.reason()});
    }
    *host_.out << table.Render(host_.TableWidth()) << '\n';
  }

  Host& host_;
  const OutputFormat output_;
  ResultFile* const file_;
  LiveLine line_;
  Progress progress_;
  // Id and label by number.
  std::vector<std::pair<std::string, std::string>> expected_;
  ScoreTally tally_;
  std::vector<std::pair<uint64_t, v1::EvaluationReport>> reports_;
  nlohmann::ordered_json all_ = nlohmann::ordered_json::array();
  absl::Status written_;
};

void PrintProblems(const Host& host, const Problems& problems) {
  for (const std::string& line : problems.lines()) *host.err << line << '\n';
}

int Score(Host& host, const CommandLine& line, const ScoreArguments& arguments) {
  if (absl::Status status = CheckArguments(arguments); !status.ok()) return Fail(host, status);
  auto options = ScoreOptionsOf(arguments.evaluation);
  if (!options.ok()) return Fail(host, options.status());

  Problems problems;
  std::unique_ptr<Source> source;
  std::ifstream file;
  if (arguments.file.empty()) {
    auto rows = NamedRows(arguments, problems);
    if (!problems.empty()) {
      PrintProblems(host, problems);
      return kExitBadInput;
    }
    source = std::make_unique<ListSource>(std::move(rows));
  } else if (arguments.file == "-") {
    source = std::make_unique<FileSource>(*host.in, "-", arguments.limit, problems);
  } else {
    file.open(arguments.file, std::ios::binary);
    if (!file || std::filesystem::is_directory(arguments.file)) {
      return Fail(host,
                  absl::NotFoundError(absl::StrCat(arguments.file, ": cannot be read as a file")));
    }
    source = std::make_unique<FileSource>(file, arguments.file, arguments.limit, problems);
  }
  std::unique_ptr<ResultFile> out;
  if (!arguments.out.empty()) {
    auto opened = ResultFile::Open(arguments.out);
    if (!opened.ok()) {
      Fail(host, opened.status());
      return kExitBadInput;
    }
    out = *std::move(opened);
  }
  // A file of which no row can be read is told before a system is looked for.
  std::optional<ScoreRow> first = source->Next();
  if (!first) {
    PrintProblems(host, problems);
    return Fail(host, absl::InvalidArgumentError(
                          absl::StrCat(arguments.file, ": holds no row that can be read")));
  }
  std::unique_ptr<TemporarySystem> system;
  auto connection = ConnectForEvaluation(host, line, arguments.evaluation, system);
  if (!connection.ok()) return Fail(host, connection.status());

  Results results(host, line.output, out.get(), source->total());
  ScoreClient client(host, *std::move(connection), {});
  ScoreClient::Callbacks callbacks;
  callbacks.next = [&]() -> std::optional<v1::ScoreRequest> {
    auto row = first ? std::exchange(first, std::nullopt) : source->Next();
    if (!row) return std::nullopt;
    results.Expect(row->id, row->label);
    row->request.set_id(row->id);
    *row->request.mutable_evaluation() = *options;
    return std::move(row->request);
  };
  callbacks.on_report = [&](uint64_t number, const v1::EvaluationReport& report) {
    results.Take(number, report);
  };
  callbacks.on_idle = [&] { results.ShowProgress(); };
  absl::Duration started = host.clock->Steady();
  absl::Status status = client.Run(callbacks);
  results.Finish(host.clock->Steady() - started);
  PrintProblems(host, problems);
  if (status.ok() && out != nullptr)
    status = results.written().ok() ? out->Finish() : results.written();
  if (!status.ok()) {
    if (out != nullptr) *host.err << "what was scored is in " << out->partial_path() << '\n';
    return Fail(host, status);
  }
  if (!problems.empty()) {
    *host.err << "kmosaic: " << problems.size() << " problems in " << arguments.file
              << "; those rows were not scored\n";
  }
  return results.tally().all_passed() && problems.empty() ? kExitDone : kExitNo;
}

}  // namespace

void AddScoreCommand(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<ScoreArguments>();
  CLI::App* command = app.add_subcommand("score", "Judge given kernels");
  command
      ->add_option("FILE.jsonl", arguments->file,
                   "rows with id, reference, solution; - is standard input")
      ->type_name("");
  command
      ->add_option("--reference", arguments->reference,
                   "reference program (Model, get_inputs, get_init_inputs)")
      ->type_name("FILE.py");
  command->add_option("--task", arguments->task, "task folder, instead of --reference")
      ->type_name("FOLDER");
  command
      ->add_option("--solution", arguments->solutions,
                   "ModelNew (.py) or a host entry (.cu); may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_option("--entry", arguments->entry, "prototype of a .cu solution's host entry")
      ->type_name("PROTOTYPE");
  command
      ->add_option("--bind", arguments->bindings,
                   "what a parameter gets, say x=input[0]; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=TARGET");
  AddStagesFlags(*command, arguments->evaluation);
  AddEvaluationFlags(*command, arguments->evaluation);
  command->add_option("--out", arguments->out, "also write one JSON object per line here")
      ->type_name("FILE.jsonl");
  command->add_option("--limit", arguments->limit, "only the first N rows")->type_name("N");
  command->callback([arguments, &line] {
    line.action = [arguments, &line](Host& host) { return Score(host, line, *arguments); };
  });
}

}  // namespace kmosaic
