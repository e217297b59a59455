// The tool-call protocol: what a model may call and what its calls mean.
#ifndef KMOSAIC_AGENT_RUNNER_AGENT_TOOLS_H_
#define KMOSAIC_AGENT_RUNNER_AGENT_TOOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent_runner/llm/llm_endpoint.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// What a reply asks for by its tool calls. Of several calls the last one counts, as of
// several code blocks.
struct ToolRequest {
  enum class Kind {
    kNone,  // no tool is called
    kEvaluate,
    kSubmit,  // judge it, and end if it is verified
    kReadGuidance,
    // Unknown tool, or arguments that are not what it takes: nothing is done from it.
    kBroken,
    kTruncated,  // the reply was cut within the call
  };
  Kind kind = Kind::kNone;
  std::string source;     // kEvaluate, kSubmit
  std::string document;   // kReadGuidance
  std::string error;      // kBroken, kTruncated: what is wrong, for the model
  std::string name;       // as called
  std::string arguments;  // valid JSON unless kBroken or kTruncated
};

// Tools of a job with ANSWER_PROTOCOL_TOOLS; `documents` can be read.
std::vector<ToolSpec> Tools(const std::vector<std::string>& documents);

// Calls that the server took apart, else a <tool_call>{...}</tool_call> that stands in the
// text since the server did not. Line ends and tabs that are not escaped are taken as they
// are meant.
ToolRequest ReadToolCalls(const v1::ModelReply& reply);

// The reply as it stands in what is sent next: with the call that counts under an id of its
// own (servers repeat theirs), a broken call as text. `turn` is the reply's number.
v1::ChatMessage AssistantMessage(const v1::ModelReply& reply, uint32_t turn);

// `text` as what follows `assistant`: the answer to its tool call, or a user's message.
v1::ChatMessage AnswerTo(const v1::ChatMessage& assistant, std::string text);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_AGENT_TOOLS_H_
