// Flags that say how candidates are evaluated; `score` and `task lint` share them.
#ifndef KMOSAIC_CLI_SCORE_EVALUATION_FLAGS_H_
#define KMOSAIC_CLI_SCORE_EVALUATION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/program/command_line.h"
#include "cli/program/connection.h"
#include "cli/system/local_system.h"
#include "kernelmosaic/v1/score.pb.h"

namespace kmosaic {

struct EvaluationFlags {
  std::string device = "auto";
  double scale = 0;
  uint32_t public_seeds = 0;
  uint32_t secret_seeds = 0;
  std::vector<std::string> stages = {"compile", "verify"};
  bool compile_baseline = false;
  std::vector<std::string> require;
  bool local = false;
  // Where --local keeps its things; empty: a temporary directory.
  std::string data;
};

// Everything but --stages and --compile-baseline, which only AddStagesFlags adds.
void AddEvaluationFlags(CLI::App& command, EvaluationFlags& flags);
void AddStagesFlags(CLI::App& command, EvaluationFlags& flags);

// INVALID_ARGUMENT when the stages are not a beginning of compile, verify, benchmark, or lack
// the one that a flag needs.
absl::StatusOr<kernelmosaic::v1::ScoreOptions> ScoreOptionsOf(const EvaluationFlags& flags);

// The coordinator to use; with --local one that is started now and ends with `system`.
absl::StatusOr<Connection> ConnectForEvaluation(Host& host, const CommandLine& line,
                                                const EvaluationFlags& flags,
                                                std::unique_ptr<TemporarySystem>& system);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SCORE_EVALUATION_FLAGS_H_
