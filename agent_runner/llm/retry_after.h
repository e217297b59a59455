#ifndef KMOSAIC_AGENT_RUNNER_LLM_RETRY_AFTER_H_
#define KMOSAIC_AGENT_RUNNER_LLM_RETRY_AFTER_H_

#include <optional>
#include <string_view>

#include "absl/time/time.h"

namespace kmosaic {

// Value of a Retry-After header: seconds (a fraction is taken too) or an HTTP date,
// which counts from `now`. A moment that is past gives zero; nothing for negative
// numbers and for anything else.
std::optional<absl::Duration> ParseRetryAfter(std::string_view value, absl::Time now);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_RETRY_AFTER_H_
