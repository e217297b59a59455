// One conversation as text for people. Pure.
#ifndef KMOSAIC_CLI_JOBS_CONVERSATION_VIEW_H_
#define KMOSAIC_CLI_JOBS_CONVERSATION_VIEW_H_

#include <string>

#include "cli/program/host.h"
#include "common/base/enum_names.h"

namespace kmosaic {

// What the task is and which views there are.
std::string TaskText(const Host& host, const v1::TaskSpec& task);

// State, attempts and result of one item, with the times of its best version.
std::string ItemText(const Host& host, const v1::ItemDetail& detail);

// Every message, the code that was judged and its verdict, turn by turn.
std::string ConversationText(const Host& host, const v1::ItemDetail& detail);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_JOBS_CONVERSATION_VIEW_H_
