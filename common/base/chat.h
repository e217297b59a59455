// What every program must see alike in the messages of a conversation.
#ifndef KMOSAIC_COMMON_BASE_CHAT_H_
#define KMOSAIC_COMMON_BASE_CHAT_H_

#include "kernelmosaic/v1/task.pb.h"

namespace kmosaic {

// "system", "user", "assistant" or "tool", as chat APIs and data sets write it; "user" for
// what is none of them.
const char* ChatRoleName(kernelmosaic::v1::ChatRole role);

// Whether the messages that came with this reply's call are all that the model saw, instead
// of being appended to what it had seen before.
bool StartsContext(const kernelmosaic::v1::ModelReply& reply);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_CHAT_H_
