// When a conversation ends, and with what result.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_STOP_RULES_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_STOP_RULES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agent_runner/agent/history.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// What is known of the conversation's job and of its other samples. It changes while a
// conversation goes on.
struct JobStanding {
  // Other samples of the task, with the same views, that are verified.
  uint32_t verified_samples = 0;
  // What the job has used up; only for jobs with a budget of their own.
  v1::Usage usage;
  std::optional<absl::Time> created;
};

// The result of a conversation that ends now.
v1::ItemResult EndOf(const History& history, v1::StopReason reason, const std::string& text);

// The end, if a rule says so before the next call. `now` only counts against budgets.
std::optional<v1::ItemResult> EndNow(const v1::JobSpec& job, const History& history,
                                     const JobStanding& standing, absl::Time now);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_STOP_RULES_H_
