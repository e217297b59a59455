#include "coordinator/dataset/conversation.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/chat.h"
#include "common/base/status.h"
#include "coordinator/dataset/flat_message.h"

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

// What stands behind the fence of a file.
std::string LanguageOf(const std::vector<v1::Step>& steps) {
  for (const v1::Step& step : steps) {
    if (step.result().has_solution()) {
      return step.result().solution().contract() == v1::CONTRACT_CUDA ? "cuda" : "python";
    }
  }
  return "python";
}

// Finds the replies that a new context still holds. They stand in their order; which ones
// is recorded, else of several with the same text the latest is meant. False when one of
// them was never given.
bool PlaceReplies(const std::vector<v1::Step>& steps, const v1::ModelReply& call,
                  const std::string& language, Conversation& conversation) {
  const auto& out = call.left_out();
  size_t position = conversation.messages.size();
  size_t number = conversation.turns.size();
  auto skip = [&] { conversation.turns[--number].message.reset(); };
  while (position-- > 0) {
    const v1::ChatMessage& message = conversation.messages[position];
    if (message.role() != v1::CHAT_ROLE_ASSISTANT) continue;
    auto fits = [&](size_t turn) {
      bool left_out = std::find(out.begin(), out.end(), turn) != out.end();
      return !left_out &&
             FlatReply(steps[conversation.turns[turn].reply].reply(), language).content() ==
                 message.content();
    };
    while (number > 0 && !fits(number - 1)) skip();
    if (number == 0) return false;
    conversation.turns[--number].message = position;
  }
  while (number > 0) skip();
  return true;
}

// Takes off a last reply without text, with the message that it answers. False when no reply
// is left.
bool DropEmptyEnd(Conversation& conversation) {
  std::vector<v1::ChatMessage>& messages = conversation.messages;
  if (!absl::StripAsciiWhitespace(messages.back().content()).empty()) return true;
  messages.pop_back();
  conversation.turns.back().message.reset();
  messages.pop_back();
  return !messages.empty() && messages.back().role() == v1::CHAT_ROLE_ASSISTANT;
}

// Takes the messages that a call added; the earlier ones are gone where it starts anew.
absl::Status AddMessages(const std::vector<v1::Step>& steps, size_t step,
                         const std::string& language, Conversation& conversation) {
  const v1::ModelReply& reply = steps[step].reply();
  bool anew = StartsContext(reply);
  if (anew) conversation.messages.clear();
  for (const v1::ChatMessage& message : reply.added()) {
    KMOSAIC_RETURN_IF_ERROR(Append(FlatMessage(message, language), step, conversation.messages));
  }
  if (anew && !PlaceReplies(steps, reply, language, conversation)) {
    return Malformed(step, "its context holds a reply that was never given");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Conversation> ReadConversation(const std::vector<v1::Step>& steps) {
  Conversation conversation;
  const std::string language = LanguageOf(steps);
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
    KMOSAIC_RETURN_IF_ERROR(AddMessages(steps, i, language, conversation));
    size_t context = 0;
    if (conversation.turns.empty()) {
      conversation.opening = conversation.messages;
    } else {
      context = conversation.turns.back().context + (StartsContext(step.reply()) ? 1 : 0);
    }
    KMOSAIC_RETURN_IF_ERROR(Append(FlatReply(step.reply(), language), i, conversation.messages));
    conversation.turns.push_back({i, std::nullopt, conversation.messages.size() - 1, context});
  }
  if (conversation.turns.empty()) return absl::NotFoundError("no reply was recorded");
  if (!DropEmptyEnd(conversation)) return absl::NotFoundError("no reply holds any text");
  return conversation;
}

}  // namespace kmosaic
