// Whether one verified version is better than another.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_PAYOFF_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_PAYOFF_H_

#include "common/base/enum_names.h"

namespace kmosaic {

// What OPTIMISE goes by.
struct Measure {
  enum class Kind {
    kNone,     // nothing was measured: there is nothing to optimise by
    kSpeedup,  // eager time over median time on a GPU; larger is better
    kTime,     // median microseconds where no baseline was measured; smaller is better
    kWork,     // counted work of the emulated device, an estimate; smaller is better
  };
  Kind kind = Kind::kNone;
  double value = 0;
};

Measure MeasureOf(const v1::EvaluationReport& report);

// Same kind, and better by at least two per cent: less is within the noise of timing.
bool IsBetter(const v1::EvaluationReport& candidate, const v1::EvaluationReport& best);

// Within a tenth of the hardware's floor for the task. False where none was measured.
bool IsAtFloor(const v1::EvaluationReport& report);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_PAYOFF_H_
