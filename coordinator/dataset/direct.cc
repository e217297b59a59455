#include "coordinator/dataset/direct.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kmosaic {

std::string FencedSource(const v1::Solution& solution) {
  size_t longest = 2;
  size_t run = 0;
  for (char c : solution.source()) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  std::string fence(longest + 1, '`');
  const char* language = solution.contract() == v1::CONTRACT_CUDA ? "cuda" : "python";
  const char* newline = absl::EndsWith(solution.source(), "\n") ? "" : "\n";
  return absl::StrCat(fence, language, "\n", solution.source(), newline, fence, "\n");
}

nlohmann::ordered_json DirectRow(const Record& record) {
  std::vector<v1::ChatMessage> messages = record.conversation.opening;
  v1::ChatMessage answer;
  answer.set_role(v1::CHAT_ROLE_ASSISTANT);
  answer.set_content(FencedSource(record.Deciding()->solution()));
  messages.push_back(std::move(answer));
  return CommonColumns(record, "direct", messages);
}

}  // namespace kmosaic
