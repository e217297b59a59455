// Reasoning text that a model writes into its answer.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_THINKING_H_
#define KMOSAIC_AGENT_RUNNER_LLM_THINKING_H_

#include <string>
#include <string_view>

namespace kmosaic {

struct SplitReply {
  // What the model said, without leading white space where reasoning was cut off.
  std::string answer;
  // Empty where there was none.
  std::string reasoning;
};

// Takes a <think>...</think> (or <thinking>...) at the start of the content apart, and
// text before a closing tag that nothing opened. A tag that never closes makes all of
// the content reasoning. Tags elsewhere are left alone.
SplitReply SplitThinking(std::string_view content);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_THINKING_H_
