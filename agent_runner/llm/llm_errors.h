// What a server's refusal is about.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_LLM_ERRORS_H_
#define KMOSAIC_AGENT_RUNNER_LLM_LLM_ERRORS_H_

#include <string_view>

#include "agent_runner/llm/llm_endpoint.h"

namespace kmosaic {

// The kind of an error object or an error text, with the server's words in `message`.
// `status` is the HTTP status, 0 inside a stream.
LlmError ClassifyError(int status, std::string_view body);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_LLM_ERRORS_H_
