#include "agent_runner/agent/payoff.h"

namespace kmosaic {
namespace {

constexpr double kLeastGain = 1.02;
constexpr double kAtFloor = 1.1;

}  // namespace

Measure MeasureOf(const v1::EvaluationReport& report) {
  if (report.has_benchmark() && report.benchmark().median_us() > 0) {
    if (report.benchmark().has_speedup()) {
      return {Measure::Kind::kSpeedup, report.benchmark().speedup()};
    }
    return {Measure::Kind::kTime, report.benchmark().median_us()};
  }
  if (report.device().kind() != v1::DEVICE_KIND_CUDA && report.has_work() &&
      report.work().cost() > 0) {
    return {Measure::Kind::kWork, report.work().cost()};
  }
  return {};
}

bool IsBetter(const v1::EvaluationReport& candidate, const v1::EvaluationReport& best) {
  Measure now = MeasureOf(candidate);
  Measure before = MeasureOf(best);
  if (now.kind == Measure::Kind::kNone || now.kind != before.kind) return false;
  if (now.kind == Measure::Kind::kSpeedup) return now.value >= before.value * kLeastGain;
  return now.value * kLeastGain <= before.value;
}

bool IsAtFloor(const v1::EvaluationReport& report) {
  const v1::BenchmarkReport& times = report.benchmark();
  return times.has_floor_us() && times.median_us() > 0 &&
         times.median_us() <= times.floor_us() * kAtFloor;
}

}  // namespace kmosaic
