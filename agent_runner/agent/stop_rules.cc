#include "agent_runner/agent/stop_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent_runner/agent/payoff.h"

namespace kmosaic {
namespace {

constexpr uint32_t kResubmissions = 2;
constexpr uint32_t kDegenerateReplies = 2;
constexpr uint32_t kRepliesWithoutVersion = 3;
constexpr uint32_t kReads = 6;
constexpr uint32_t kUnpaidOptimisations = 3;

absl::Duration DurationOf(const google::protobuf::Duration& wire) {
  return absl::Seconds(wire.seconds()) + absl::Nanoseconds(wire.nanos());
}

std::optional<v1::ItemResult> EndWhenVerified(const v1::JobSpec& job, const History& history) {
  auto stop = [&](v1::StopReason reason, const std::string& text) {
    return EndOf(history, reason, text);
  };
  const v1::EvaluationReport& best = history.best->report();
  Measure measure = MeasureOf(best);
  if (history.last_word && history.last_result->report().verdict() == v1::VERDICT_PASSED) {
    return stop(v1::STOP_REASON_SOLVED, "verified, and handed in as the model's last word");
  }
  double target = job.target_speedup();
  if (target > 0 && measure.kind == Measure::Kind::kSpeedup && measure.value >= target) {
    return stop(v1::STOP_REASON_TARGET_REACHED,
                absl::StrFormat("speedup %.3g reaches the target %.3g", measure.value, target));
  }
  if (job.budget().optimise_turns() == 0) {
    return stop(v1::STOP_REASON_SOLVED, "verified; the job asks for no optimisation");
  }
  if (measure.kind == Measure::Kind::kNone) {
    return stop(v1::STOP_REASON_SOLVED, "verified; nothing was measured to optimise by");
  }
  if (IsAtFloor(best)) {
    return stop(v1::STOP_REASON_AT_FLOOR, "verified, and its time is at the hardware's floor");
  }
  if (history.optimise_turns >= job.budget().optimise_turns()) {
    return stop(v1::STOP_REASON_SOLVED, "verified; its optimisation turns are used up");
  }
  if (history.unpaid_in_a_row >= kUnpaidOptimisations) {
    return stop(v1::STOP_REASON_SOLVED, absl::StrCat("verified; ", kUnpaidOptimisations,
                                                     " optimisations in a row gave nothing"));
  }
  return std::nullopt;
}

std::optional<v1::ItemResult> EndByConversation(const v1::JobSpec& job, const History& history,
                                                absl::Time now) {
  auto stop = [&](v1::StopReason reason, const std::string& text) {
    return EndOf(history, reason, text);
  };
  if (history.last_result == nullptr) return std::nullopt;
  if (history.last_result->report().verdict() == v1::VERDICT_INVALID_TASK) {
    return stop(v1::STOP_REASON_INVALID_TASK, history.last_result->report().reason());
  }
  if (history.last_result->report().verdict() == v1::VERDICT_INFRASTRUCTURE) {
    return stop(v1::STOP_REASON_INFRASTRUCTURE, history.last_result->report().reason());
  }
  if (history.best != nullptr) {
    if (auto verified = EndWhenVerified(job, history)) return verified;
  }
  if (history.degenerate_in_a_row >= kDegenerateReplies) {
    return stop(v1::STOP_REASON_DEGENERATE_OUTPUT,
                absl::StrCat(kDegenerateReplies, " replies in a row were empty or repetitions"));
  }
  if (history.resubmissions_in_a_row >= kResubmissions) {
    return stop(v1::STOP_REASON_NO_PROGRESS, absl::StrCat("a version judged before was handed in ",
                                                          kResubmissions, " times in a row"));
  }
  if (history.reads_in_a_row >= kReads) {
    return stop(v1::STOP_REASON_NO_PROGRESS,
                absl::StrCat(kReads, " replies in a row only asked for guidance"));
  }
  if (history.no_version_in_a_row >= kRepliesWithoutVersion) {
    return stop(
        v1::STOP_REASON_NO_PROGRESS,
        absl::StrCat(kRepliesWithoutVersion, " replies in a row held no solution; the last: ",
                     history.last_result->extraction_error()));
  }
  const v1::Budget& budget = job.budget();
  if (budget.turns() > 0 && history.turns >= budget.turns()) {
    return stop(v1::STOP_REASON_TURN_BUDGET, absl::StrCat(budget.turns(), " turns are used up"));
  }
  uint64_t tokens = history.usage.prompt_tokens() + history.usage.completion_tokens();
  if (budget.tokens() > 0 && tokens >= budget.tokens()) {
    return stop(v1::STOP_REASON_TOKEN_BUDGET, absl::StrCat(budget.tokens(), " tokens are used up"));
  }
  if (budget.cost_usd() > 0 && history.usage.cost_usd() >= budget.cost_usd()) {
    return stop(v1::STOP_REASON_COST_BUDGET,
                absl::StrFormat("%.4g USD are used up", budget.cost_usd()));
  }
  absl::Duration time = DurationOf(budget.time());
  if (time > absl::ZeroDuration() && std::max(now, history.last_at) - *history.started >= time) {
    return stop(v1::STOP_REASON_TIME_BUDGET, absl::StrCat(absl::FormatDuration(time), " are over"));
  }
  return std::nullopt;
}

// By what the whole job has used, and by the other samples of the task.
std::optional<v1::ItemResult> EndByJob(const v1::JobSpec& job, const History& history,
                                       const JobStanding& standing, absl::Time now) {
  const v1::JobBudget& budget = job.job_budget();
  uint64_t tokens = standing.usage.prompt_tokens() + standing.usage.completion_tokens();
  if (budget.tokens() > 0 && tokens >= budget.tokens()) {
    return EndOf(history, v1::STOP_REASON_TOKEN_BUDGET,
                 absl::StrCat("the job's ", budget.tokens(), " tokens are used up"));
  }
  if (budget.cost_usd() > 0 && standing.usage.cost_usd() >= budget.cost_usd()) {
    return EndOf(history, v1::STOP_REASON_COST_BUDGET,
                 absl::StrFormat("the job's %.4g USD are used up", budget.cost_usd()));
  }
  absl::Duration time = DurationOf(budget.time());
  if (time > absl::ZeroDuration() && standing.created && now - *standing.created >= time) {
    return EndOf(history, v1::STOP_REASON_TIME_BUDGET,
                 absl::StrCat("the job's ", absl::FormatDuration(time), " are over"));
  }
  bool enough = job.enough_verified() > 0 && standing.verified_samples >= job.enough_verified();
  if (enough && history.best == nullptr) {
    return EndOf(
        history, v1::STOP_REASON_ENOUGH_VERIFIED,
        absl::StrCat(standing.verified_samples, " other samples of the task are verified"));
  }
  return std::nullopt;
}

}  // namespace

v1::ItemResult EndOf(const History& history, v1::StopReason reason, const std::string& text) {
  v1::ItemResult result;
  result.set_stop_reason(reason);
  result.set_reason(text);
  *result.mutable_usage() = history.usage;
  result.set_turns(history.turns);
  if (history.started) {
    result.set_seconds(absl::ToDoubleSeconds(history.last_at - *history.started));
  }
  if (history.best == nullptr) {
    if (history.last_judged != nullptr) {
      result.set_verdict(history.last_judged->report().verdict());
    }
    return result;
  }
  result.set_verified(true);
  result.set_verdict(v1::VERDICT_PASSED);
  result.set_best_step(history.best_step);
  Measure best = MeasureOf(history.best->report());
  Measure first = MeasureOf(history.first_verified->report());
  if (best.kind == Measure::Kind::kSpeedup) result.set_speedup(best.value);
  if (best.kind == Measure::Kind::kWork && first.kind == Measure::Kind::kWork) {
    result.set_work_ratio(best.value / first.value);
  }
  return result;
}

std::optional<v1::ItemResult> EndNow(const v1::JobSpec& job, const History& history,
                                     const JobStanding& standing, absl::Time now) {
  if (auto end = EndByConversation(job, history, now)) return end;
  return EndByJob(job, history, standing, now);
}

}  // namespace kmosaic
