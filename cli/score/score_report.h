// Verdicts as JSON, lines and tables. Pure.
#ifndef KMOSAIC_CLI_SCORE_SCORE_REPORT_H_
#define KMOSAIC_CLI_SCORE_SCORE_REPORT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/progress.h"
#include "cli/program/host.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// {"id", "verdict", "reason", "compile", "verify", "benchmark", "work", "device", ...}; null
// where something was not measured. `label` is added unless empty.
nlohmann::ordered_json ScoreJson(const std::string& id, const std::string& label,
                                 const v1::EvaluationReport& report);

// Everything about one candidate, for people.
std::string ReportText(const Host& host, const std::string& id, const v1::EvaluationReport& report);

// False for INFRASTRUCTURE, INVALID_TASK and UNSUPPORTED: they say nothing about the candidate.
bool IsAboutCandidate(v1::Verdict verdict);

// What came of many candidates. One thread.
class ScoreTally {
 public:
  void Add(const std::string& label, const v1::EvaluationReport& report);

  uint64_t total() const { return total_; }
  uint64_t passed() const { return passed_; }
  bool all_passed() const { return passed_ == total_; }

  // Verdicts by number; with labels, a column for each label.
  std::string Tables(const Host& host) const;
  // "155 candidates in 5m12s (29.8/min): 97 passed, 50 failed, 8 without a verdict about them".
  std::string Summary(absl::Duration elapsed) const;
  // What the live bar shows besides.
  std::vector<std::string> Details() const;
  nlohmann::ordered_json ToJson(absl::Duration elapsed) const;

 private:
  uint64_t total_ = 0;
  uint64_t passed_ = 0;
  uint64_t not_judged_ = 0;
  std::map<v1::Verdict, uint64_t> verdicts_;
  std::map<std::string, std::map<v1::Verdict, uint64_t>> by_label_;
  std::vector<double> compile_seconds_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SCORE_SCORE_REPORT_H_
