#include "coordinator/dataset/conversation.h"

#include "absl/strings/str_cat.h"
#include "common/base/chat.h"
#include "common/base/status.h"

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

// Finds the replies that a new context still holds. They stand in their order; of several
// with the same text the latest is meant. False when one of them was never given.
bool PlaceReplies(const std::vector<v1::Step>& steps, Conversation& conversation) {
  size_t position = conversation.messages.size();
  auto turn = conversation.turns.rbegin();
  auto skip = [&] { (turn++)->message.reset(); };
  while (position-- > 0) {
    const v1::ChatMessage& message = conversation.messages[position];
    if (message.role() != v1::CHAT_ROLE_ASSISTANT) continue;
    while (turn != conversation.turns.rend() &&
           steps[turn->reply].reply().content() != message.content()) {
      skip();
    }
    if (turn == conversation.turns.rend()) return false;
    (turn++)->message = position;
  }
  while (turn != conversation.turns.rend()) skip();
  return true;
}

// Takes the messages that a call added; the earlier ones are gone where it starts anew.
absl::Status AddMessages(const std::vector<v1::Step>& steps, size_t step,
                         Conversation& conversation) {
  const v1::ModelReply& reply = steps[step].reply();
  bool anew = StartsContext(reply);
  if (anew) conversation.messages.clear();
  for (const v1::ChatMessage& message : reply.added()) {
    KMOSAIC_RETURN_IF_ERROR(Append(message, step, conversation.messages));
  }
  if (anew && !PlaceReplies(steps, conversation)) {
    return Malformed(step, "its context holds a reply that was never given");
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
    KMOSAIC_RETURN_IF_ERROR(AddMessages(steps, i, conversation));
    size_t context = 0;
    if (conversation.turns.empty()) {
      conversation.opening = conversation.messages;
    } else {
      context = conversation.turns.back().context + (StartsContext(step.reply()) ? 1 : 0);
    }
    v1::ChatMessage reply;
    reply.set_role(v1::CHAT_ROLE_ASSISTANT);
    reply.set_content(step.reply().content());
    KMOSAIC_RETURN_IF_ERROR(Append(reply, i, conversation.messages));
    conversation.turns.push_back({i, std::nullopt, conversation.messages.size() - 1, context});
  }
  if (conversation.turns.empty()) return absl::NotFoundError("no reply was recorded");
  return conversation;
}

}  // namespace kmosaic
