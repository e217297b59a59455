// What servers of one API disagree about.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_CHAT_DIALECT_H_
#define KMOSAIC_AGENT_RUNNER_LLM_CHAT_DIALECT_H_

#include <string>
#include <string_view>

#include "common/base/enum_names.h"

namespace kmosaic {

struct ChatDialect {
  bool max_completion_tokens = false;  // instead of max_tokens
  bool temperature = true;
  bool top_p = true;
  bool seed = true;
  bool stream_options = true;
  bool parallel_tool_calls = true;  // the parameter that forbids them is sent
  // JSON object whose members are added to each request; empty: none.
  std::string extra;

  bool operator==(const ChatDialect&) const = default;
};

// As an endpoint's profile states it.
ChatDialect DialectOf(const v1::Dialect& profile);

// The dialect that avoids what a 400 or 422 with this text complains about; the same one
// where it complains about something else.
ChatDialect AdaptDialect(const ChatDialect& dialect, std::string_view error_text);

// `body` (a JSON object) with the members of dialect.extra, which replace its own.
std::string WithExtra(const std::string& body, const ChatDialect& dialect);

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_CHAT_DIALECT_H_
