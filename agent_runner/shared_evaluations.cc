#include "agent_runner/shared_evaluations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent_runner/agent/normalised_source.h"
#include "common/base/digest.h"

namespace kmosaic {
namespace {

// The token has a lock of its own and wakes without ours: look again now and then.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

std::string KeyOf(const EvaluationJob& job) {
  return Sha256Hex(absl::StrCat(Sha256Hex(job.task->oracle().SerializeAsString()),
                                Sha256Hex(job.job->evaluation().SerializeAsString()),
                                job.benchmark ? "timed" : "", job.solution->contract(),
                                NormalisedDigest(*job.solution)));
}

}  // namespace

SharedEvaluations::SharedEvaluations(Evaluator& evaluator, RunnerMetrics& metrics, size_t max_bytes)
    : evaluator_(evaluator), metrics_(metrics), max_bytes_(max_bytes) {}

SharedEvaluations::Result SharedEvaluations::Evaluate(const EvaluationJob& job,
                                                      CancelToken& cancel) {
  const std::string key = KeyOf(job);
  v1::EvaluationReport report;
  if (!Begin(key, cancel, &report)) {
    if (cancel.cancelled()) return {EvaluationCancelled{}};
    metrics_.evaluations_shared.Increment();
    return {std::move(report), true};
  }
  EvaluationOutcome outcome = evaluator_.Evaluate(job, cancel);
  End(key, outcome);
  return {std::move(outcome)};
}

bool SharedEvaluations::Begin(const std::string& key, CancelToken& cancel,
                              v1::EvaluationReport* report) {
  CancelToken::Registration wake(cancel, [this] { changed_.notify_all(); });
  std::unique_lock lock(mutex_);
  while (!cancel.cancelled()) {
    if (auto kept = kept_.find(key); kept != kept_.end()) {
      ages_.splice(ages_.begin(), ages_, kept->second.age);
      *report = kept->second.report;
      return false;
    }
    if (running_.insert(key).second) return true;
    changed_.wait_for(lock, absl::ToChronoMicroseconds(kLongestSleep));
  }
  return false;
}

void SharedEvaluations::End(const std::string& key, const EvaluationOutcome& outcome) {
  std::lock_guard lock(mutex_);
  running_.erase(key);
  if (const auto* report = std::get_if<v1::EvaluationReport>(&outcome)) Keep(key, *report);
  changed_.notify_all();
}

void SharedEvaluations::Keep(const std::string& key, const v1::EvaluationReport& report) {
  bytes_ += report.ByteSizeLong();
  ages_.push_front(key);
  kept_[key] = {report, ages_.begin()};
  while (bytes_ > max_bytes_ && ages_.size() > 1) {
    auto oldest = kept_.find(ages_.back());
    bytes_ -= oldest->second.report.ByteSizeLong();
    kept_.erase(oldest);
    ages_.pop_back();
  }
}

}  // namespace kmosaic
