#include "agent_runner/llm/thinking.h"

#include <algorithm>

namespace kmosaic {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view SkipBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

}  // namespace

SplitReply SplitThinking(std::string_view content) {
  std::string_view text = SkipBlanks(content);
  for (std::string_view name : {"think>", "thinking>"}) {
    std::string opening = "<" + std::string(name);
    std::string closing = "</" + std::string(name);
    bool opened = text.substr(0, opening.size()) == opening;
    std::string_view body = opened ? text.substr(opening.size()) : text;
    size_t end = body.find(closing);
    if (end == std::string_view::npos) {
      if (opened) return {"", std::string(SkipBlanks(body))};
      continue;
    }
    // A closing tag that nothing opened ends reasoning only where no opening tag stands
    // between (then both are part of the text).
    if (!opened && body.substr(0, end).find(opening) != std::string_view::npos) continue;
    return {std::string(SkipBlanks(body.substr(end + closing.size()))),
            std::string(SkipBlanks(body.substr(0, end)))};
  }
  return {std::string(content), ""};
}

}  // namespace kmosaic
