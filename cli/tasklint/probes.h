// Solutions that show whether a task means something (docs/tasks.md, "Lint").
//
// Each probe is the task's own reference, wrapped as a candidate that launches an empty
// kernel and returns the reference's answer, or something that must not pass for it. They
// run where every candidate runs, in a worker's sandbox.
#ifndef KMOSAIC_CLI_TASKLINT_PROBES_H_
#define KMOSAIC_CLI_TASKLINT_PROBES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/enum_names.h"

namespace kmosaic {

struct Probe {
  // "zeros", "input 1 replaced".
  std::string name;
  // Whether a task in order lets it pass.
  bool must_pass;
  // What is wrong with the task when it does not go so.
  std::string meaning;
  // Python source of the candidate.
  std::string source;
};

// The probe that shows that the reference runs, agrees with itself and is finite.
Probe SelfProbe(const v1::Oracle& oracle);

// What must not pass. The one of lower precision is left out where the task allows it.
std::vector<Probe> CheatProbes(const v1::Oracle& oracle);

// What is wrong with the task after a probe's report; empty when nothing is. A machine that
// failed is UNAVAILABLE.
absl::Status JudgeProbe(const Probe& probe, const v1::EvaluationReport& report,
                        std::string& finding);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKLINT_PROBES_H_
