// One evaluation for all conversations that hand in the same version.
#ifndef KMOSAIC_AGENT_RUNNER_SHARED_EVALUATIONS_H_
#define KMOSAIC_AGENT_RUNNER_SHARED_EVALUATIONS_H_

#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "agent_runner/evaluator.h"

namespace kmosaic {

// Thread-safe. Versions are the same when oracle, evaluation and normalised source are;
// what one conversation waits for the others wait for too, and later ones get the report
// while it is kept.
class SharedEvaluations {
 public:
  // `evaluator` and `metrics` must outlive it. Reports are kept up to `max_bytes`.
  SharedEvaluations(Evaluator& evaluator, RunnerMetrics& metrics,
                    size_t max_bytes = size_t{64} << 20);

  struct Result {
    EvaluationOutcome outcome;
    // It is another conversation's report.
    bool shared = false;
  };
  // As Evaluator::Evaluate. A failure or a cancellation is nobody else's: whoever waited
  // for it tries by itself.
  Result Evaluate(const EvaluationJob& job, CancelToken& cancel);

 private:
  struct Kept {
    v1::EvaluationReport report;
    std::list<std::string>::iterator age;
  };
  // Waits while another one is at it; true when the caller is to evaluate.
  bool Begin(const std::string& key, CancelToken& cancel, v1::EvaluationReport* report);
  void End(const std::string& key, const EvaluationOutcome& outcome);
  void Keep(const std::string& key, const v1::EvaluationReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Evaluator& evaluator_;
  RunnerMetrics& metrics_;
  const size_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  // Keys of kept_, the one used last in front.
  std::list<std::string> ages_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Keys that somebody evaluates now.
  std::set<std::string> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_SHARED_EVALUATIONS_H_
