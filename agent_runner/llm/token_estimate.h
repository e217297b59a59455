// How many tokens a text takes where no tokenizer is at hand.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_TOKEN_ESTIMATE_H_
#define KMOSAIC_AGENT_RUNNER_LLM_TOKEN_ESTIMATE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"

namespace kmosaic {

// One token for every three bytes, rounded up: on the high side for prose (about four)
// and near the mark for C++ and Python.
uint64_t EstimateTokens(std::string_view text);

// Contents and arguments plus eight tokens a message or call for the chat template.
uint64_t EstimateTokens(const std::vector<v1::ChatMessage>& messages);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_TOKEN_ESTIMATE_H_
