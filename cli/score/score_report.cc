#include "cli/score/score_report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/numbers.h"
#include "cli/output/table.h"
#include "cli/output/times.h"
#include "cli/output/wire_json.h"

namespace kmosaic {
namespace {

using nlohmann::ordered_json;

// The middle value of what was really compiled.
std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string ColouredVerdict(const Host& host, v1::Verdict verdict) {
  Colour colour = verdict == v1::VERDICT_PASSED ? Colour::kGreen
                  : IsAboutCandidate(verdict)   ? Colour::kRed
                                                : Colour::kYellow;
  return Coloured(host, colour, VerdictName(verdict));
}

std::string Indented(const std::string& text) {
  std::string result = "    ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  while (!result.empty() && (result.back() == ' ' || result.back() == '\n')) result.pop_back();
  return result + "\n";
}

void AppendMismatch(const v1::Mismatch& mismatch, std::string& text) {
  absl::StrAppend(&text, "  mismatch  output ", mismatch.output(), " at [",
                  absl::StrJoin(mismatch.index(), ", "), "]: expected ", mismatch.expected(),
                  ", got ", mismatch.got(), " (tolerance ", mismatch.tolerance(), "); ",
                  mismatch.wrong_elements(), " of ", mismatch.elements(), " elements are wrong");
  if (!mismatch.pattern().empty()) absl::StrAppend(&text, ", ", mismatch.pattern());
  if (mismatch.has_public_seed()) absl::StrAppend(&text, ", seed ", mismatch.public_seed());
  if (!mismatch.family().empty()) absl::StrAppend(&text, ", '", mismatch.family(), "' inputs");
  absl::StrAppend(&text, "\n");
}

}  // namespace

bool IsAboutCandidate(v1::Verdict verdict) {
  return verdict != v1::VERDICT_UNSPECIFIED && verdict != v1::VERDICT_UNSUPPORTED &&
         verdict != v1::VERDICT_INVALID_TASK && verdict != v1::VERDICT_INFRASTRUCTURE;
}

ordered_json ScoreJson(const std::string& id, const std::string& label,
                       const v1::EvaluationReport& report) {
  ordered_json json = {{"id", id}};
  json.update(ToJson(report));
  if (!label.empty()) json["label"] = label;
  return json;
}

std::string ReportText(const Host& host, const std::string& id,
                       const v1::EvaluationReport& report) {
  std::string text = absl::StrCat(id, "  ", ColouredVerdict(host, report.verdict()), "\n");
  if (!report.reason().empty()) absl::StrAppend(&text, "  reason    ", report.reason(), "\n");
  if (report.has_compile()) {
    const v1::CompileReport& compile = report.compile();
    absl::StrAppend(&text, "  compile   ", ShortDuration(absl::Seconds(compile.seconds())), ", ",
                    compile.abi(), compile.cached() ? ", from the cache" : "", "\n");
    if (!compile.log().empty()) absl::StrAppend(&text, Indented(compile.log()));
  }
  if (report.has_verify()) {
    const v1::VerifyReport& verify = report.verify();
    absl::StrAppend(&text, "  verify    ", ShortDuration(absl::Seconds(verify.seconds())), ", ",
                    verify.public_seeds(), " public and ", verify.secret_seeds(),
                    " secret seeds, worst error ",
                    absl::StrFormat("%.3g", verify.worst_error_ratio()), " of its tolerance\n");
    if (!verify.checks().empty())
      absl::StrAppend(&text, "  checks    ", absl::StrJoin(verify.checks(), ", "), "\n");
    if (!verify.shapes().empty()) {
      std::map<std::string, int64_t> shapes(verify.shapes().begin(), verify.shapes().end());
      absl::StrAppend(&text, "  shapes    ", absl::StrJoin(shapes, " ", absl::PairFormatter("=")),
                      "\n");
    }
    if (verify.has_mismatch()) AppendMismatch(verify.mismatch(), text);
    for (const std::string& note : verify.notes())
      absl::StrAppend(&text, "  note      ", note, "\n");
  }
  if (report.has_benchmark())
    absl::StrAppend(&text, "  time      ", TimesText(report.benchmark()), "\n");
  if (report.has_work()) {
    const v1::WorkReport& work = report.work();
    absl::StrAppend(&text, "  work      ", work.launches(), " launches, ",
                    ShortBytes(work.global_load_bytes()), " loaded, ",
                    ShortBytes(work.global_store_bytes()), " stored, ", work.barriers(),
                    " barriers (counted, no time)\n");
  }
  if (report.has_device()) {
    absl::StrAppend(&text, "  device    ", report.device().name(), ", worker ",
                    report.device().worker(), "\n");
  }
  if (report.unsandboxed()) absl::StrAppend(&text, "  WITHOUT SANDBOX\n");
  if (!report.output().empty()) absl::StrAppend(&text, "  printed\n", Indented(report.output()));
  return text;
}

void ScoreTally::Add(const std::string& label, const v1::EvaluationReport& report) {
  ++total_;
  ++verdicts_[report.verdict()];
  if (report.verdict() == v1::VERDICT_PASSED) ++passed_;
  if (!IsAboutCandidate(report.verdict())) ++not_judged_;
  if (!label.empty()) ++by_label_[label][report.verdict()];
  if (report.has_compile() && !report.compile().cached()) {
    compile_seconds_.push_back(report.compile().seconds());
  }
}

std::string ScoreTally::Tables(const Host& host) const {
  std::vector<Table::Column> columns = {{"VERDICT"}, {"CANDIDATES", Align::kRight}};
  for (const auto& [label, verdicts] : by_label_) {
    columns.push_back({absl::StrCat("LABELLED ", label), Align::kRight});
  }
  Table table(columns);
  std::vector<std::pair<v1::Verdict, uint64_t>> ordered(verdicts_.begin(), verdicts_.end());
  // Passed first, then by number.
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    bool a_passed = a.first == v1::VERDICT_PASSED;
    bool b_passed = b.first == v1::VERDICT_PASSED;
    return a_passed != b_passed ? a_passed : a.second > b.second;
  });
  for (const auto& [verdict, number] : ordered) {
    std::vector<std::string> row = {ColouredVerdict(host, verdict), absl::StrCat(number)};
    for (const auto& [label, verdicts] : by_label_) {
      auto found = verdicts.find(verdict);
      row.push_back(found == verdicts.end() ? "-" : absl::StrCat(found->second));
    }
    table.AddRow(std::move(row));
  }
  return table.Render(host.TableWidth());
}

std::string ScoreTally::Summary(absl::Duration elapsed) const {
  std::string text = absl::StrCat(total_, total_ == 1 ? " candidate in " : " candidates in ",
                                  ShortDuration(elapsed));
  double seconds = absl::ToDoubleSeconds(elapsed);
  if (seconds > 0 && total_ > 1)
    absl::StrAppend(&text, " (", FormatRate(static_cast<double>(total_) / seconds), ")");
  absl::StrAppend(&text, ": ", passed_, " passed, ", total_ - passed_ - not_judged_, " failed, ",
                  not_judged_, " without a verdict about them");
  if (auto median = Median(compile_seconds_)) {
    absl::StrAppend(&text, "; median compile ", ShortDuration(absl::Seconds(*median)));
  }
  return text + "\n";
}

std::vector<std::string> ScoreTally::Details() const {
  std::vector<std::string> details = {absl::StrCat("passed ", passed_)};
  if (uint64_t failed = total_ - passed_ - not_judged_; failed > 0)
    details.push_back(absl::StrCat("failed ", failed));
  if (not_judged_ > 0) details.push_back(absl::StrCat("not judged ", not_judged_));
  return details;
}

ordered_json ScoreTally::ToJson(absl::Duration elapsed) const {
  auto counts = [](const std::map<v1::Verdict, uint64_t>& verdicts) {
    ordered_json json = ordered_json::object();
    for (const auto& [verdict, number] : verdicts) json[VerdictName(verdict)] = number;
    return json;
  };
  ordered_json json = {{"candidates", total_},
                       {"passed", passed_},
                       {"failed", total_ - passed_ - not_judged_},
                       {"not_judged", not_judged_},
                       {"seconds", absl::ToDoubleSeconds(elapsed)},
                       {"verdicts", counts(verdicts_)},
                       {"by_label", ordered_json::object()}};
  for (const auto& [label, verdicts] : by_label_) json["by_label"][label] = counts(verdicts);
  return json;
}

}  // namespace kmosaic
