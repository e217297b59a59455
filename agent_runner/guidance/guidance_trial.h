// Which guidance documents a trial withholds from which conversations.
#ifndef KMOSAIC_AGENT_RUNNER_GUIDANCE_GUIDANCE_TRIAL_H_
#define KMOSAIC_AGENT_RUNNER_GUIDANCE_GUIDANCE_TRIAL_H_

#include <cstdint>
#include <string>

#include "common/base/enum_names.h"

namespace kmosaic {

// By a hash of all arguments: each document is withheld from half of the conversations, from
// others than any other document, and always from the same ones. Of two neighbouring
// samples (0 and 1, 2 and 3, ...) of a task exactly one gets it.
bool IsWithheld(const std::string& document, const std::string& task, const v1::ViewSet& views,
                uint32_t sample);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_GUIDANCE_GUIDANCE_TRIAL_H_
