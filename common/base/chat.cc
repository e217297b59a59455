#include "common/base/chat.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

const char* ChatRoleName(v1::ChatRole role) {
  switch (role) {
    case v1::CHAT_ROLE_SYSTEM:
      return "system";
    case v1::CHAT_ROLE_ASSISTANT:
      return "assistant";
    case v1::CHAT_ROLE_TOOL:
      return "tool";
    default:
      return "user";
  }
}

bool StartsContext(const v1::ModelReply& reply) {
  return reply.added_size() > 0 && reply.added(0).role() == v1::CHAT_ROLE_SYSTEM;
}

}  // namespace kmosaic
