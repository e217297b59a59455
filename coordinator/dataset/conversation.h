// The durable steps of an item as the messages and turns that a dataset shows.
#ifndef KMOSAIC_COORDINATOR_DATASET_CONVERSATION_H_
#define KMOSAIC_COORDINATOR_DATASET_CONVERSATION_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/enum_names.h"
#include "kernelmosaic/v1/task.pb.h"

namespace kmosaic {

// One reply of the model and what came of it. Positions, so that it may be copied.
struct Turn {
  // In the item's steps.
  size_t reply = 0;
  std::optional<size_t> result;
  // In Conversation::messages: the assistant's message. Unset where the last context does
  // not hold this reply.
  std::optional<size_t> message;
  // Which context it answered, from 0: the context starts anew with a reply whose `added`
  // begins with a system message.
  size_t context = 0;
};

// In both lists at most one system message, first; then user and assistant take turns, the
// user first.
struct Conversation {
  // The last context as the model saw it, and the reply to it: the assistant is last. It is
  // all that was ever said unless the context was started anew. A last reply without text is
  // left out, with the message that it answers.
  std::vector<v1::ChatMessage> messages;
  // What was sent with the first call: the user is last.
  std::vector<v1::ChatMessage> opening;
  std::vector<Turn> turns;
};

// Messages are flat (flat_message.h). Neighbouring messages of one role that a turn added become
// one message (with an empty line between them). INVALID_ARGUMENT with the step when steps are
// missing, roles do not alternate even so, or a context that starts anew holds an assistant's
// message that is no earlier reply; NOT_FOUND when there is no reply at all, or none with text.
absl::StatusOr<Conversation> ReadConversation(const std::vector<v1::Step>& steps);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_CONVERSATION_H_
