// What a model is told before its first turn.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_PROMPT_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_PROMPT_H_

#include <string>
#include <vector>

#include "agent_runner/guidance/guidance_library.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// Who it is, the rules of the contract, how to answer.
std::string SystemPrompt(const v1::JobSpec& job, const v1::TaskSpec& task);

// The task through the views chosen, in the order description, reference, spec, whatever
// their order in `views`; the entry's prototype for CONTRACT_CUDA; then the documents.
// The oracle's program never stands here unless the reference view is chosen.
std::string TaskPrompt(const v1::TaskSpec& task, const v1::ViewSet& views,
                       const std::vector<const GuidanceDocument*>& guidance);

// How documents stand in any message; empty without documents.
std::string GuidanceSection(const std::vector<const GuidanceDocument*>& guidance);

// A fenced block of `text`, with a fence longer than any inside it.
std::string Fenced(const std::string& info, const std::string& text);

// "python" or "cuda".
std::string FenceInfo(v1::Contract contract);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_PROMPT_H_
