// Characters beyond U+FFFF whose two JSON escapes arrive in two different strings.
//
// Some servers cut text between the halves of a surrogate pair, so that one JSON string
// ends with \ud83d and the next one begins with \ude00. No JSON parser takes a half.
// Each half is therefore hidden as a private-use character while strings are parsed, and
// neighbours are joined afterwards.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_LONE_SURROGATES_H_
#define KMOSAIC_AGENT_RUNNER_LLM_LONE_SURROGATES_H_

#include <string>
#include <string_view>

namespace kmosaic {

// JSON text in which escapes of halves without their other half stand for U+10F000 plus
// their last eleven bits. `found` is set when there was one, else left as it is.
std::string HideLoneSurrogates(std::string_view json, bool* found);

// Hidden high halves followed by hidden low ones become the characters they mean; other
// hidden halves become U+FFFD.
std::string JoinHiddenSurrogates(std::string_view text);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_LONE_SURROGATES_H_
