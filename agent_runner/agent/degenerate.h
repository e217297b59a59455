// Replies that are no answer: a model that repeats itself without end.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_DEGENERATE_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_DEGENERATE_H_

#include <string_view>

namespace kmosaic {

// Whether the text ends in one piece of at most 200 bytes over and over (97 % of the bytes
// equal to the ones a period before): eight times and 400 bytes at least, or 1500 bytes.
// Meant for replies in which no complete solution was found: a table of zeros in good code
// looks the same.
bool EndsInRepetition(std::string_view text);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_DEGENERATE_H_
