#include "coordinator/dataset/conversation.h"

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

absl::Status Malformed(size_t step, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("step ", step, ": ", why));
}

// Adds `message`, or joins it to the last one of the same role.
absl::Status Append(const v1::ChatMessage& message, size_t step,
                    std::vector<v1::ChatMessage>& messages) {
  v1::ChatRole last = messages.empty() ? v1::CHAT_ROLE_UNSPECIFIED : messages.back().role();
  switch (message.role()) {
    case v1::CHAT_ROLE_SYSTEM:
      if (!messages.empty() && last != v1::CHAT_ROLE_SYSTEM) {
        return Malformed(step, "a system message after the beginning");
      }
      break;
    case v1::CHAT_ROLE_USER:
      break;
    case v1::CHAT_ROLE_ASSISTANT:
      if (last != v1::CHAT_ROLE_USER) return Malformed(step, "a reply that nobody asked for");
      break;
    default:
      return Malformed(step, "a message without a role");
  }
  if (!messages.empty() && last == message.role()) {
    absl::StrAppend(messages.back().mutable_content(), "\n\n", message.content());
  } else {
    messages.push_back(message);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Conversation> ReadConversation(const std::vector<v1::Step>& steps) {
  Conversation conversation;
  for (size_t i = 0; i < steps.size(); ++i) {
    const v1::Step& step = steps[i];
    if (step.number() != i) return Malformed(i, "steps are missing before it");
    if (step.has_result()) {
      if (conversation.turns.empty() || conversation.turns.back().result.has_value()) {
        return Malformed(i, "a result without a reply");
      }
      conversation.turns.back().result = i;
      continue;
    }
    if (!step.has_reply()) return Malformed(i, "neither a reply nor a result");
    for (const v1::ChatMessage& message : step.reply().added()) {
      absl::Status status = Append(message, i, conversation.messages);
      if (!status.ok()) return status;
    }
    v1::ChatMessage reply;
    reply.set_role(v1::CHAT_ROLE_ASSISTANT);
    reply.set_content(step.reply().content());
    absl::Status status = Append(reply, i, conversation.messages);
    if (!status.ok()) return status;
    conversation.turns.push_back({i, std::nullopt, conversation.messages.size() - 1});
  }
  if (conversation.turns.empty()) return absl::NotFoundError("no reply was recorded");
  return conversation;
}

}  // namespace kmosaic
