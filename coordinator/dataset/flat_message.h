// Messages in the one form that data sets show, whatever protocol a model used.
#ifndef KMOSAIC_COORDINATOR_DATASET_FLAT_MESSAGE_H_
#define KMOSAIC_COORDINATOR_DATASET_FLAT_MESSAGE_H_

#include <string>

#include "kernelmosaic/v1/task.pb.h"

namespace kmosaic {

// A call that hands in a file becomes a fenced block of it (with `language` behind the
// fence) after the text, another call its name and arguments; the answer to a call becomes
// a user's message. Other messages stay as they are.
kernelmosaic::v1::ChatMessage FlatMessage(const kernelmosaic::v1::ChatMessage& message,
                                          const std::string& language);

// The reply as an assistant's flat message; of several calls the last one counts.
kernelmosaic::v1::ChatMessage FlatReply(const kernelmosaic::v1::ModelReply& reply,
                                        const std::string& language);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_FLAT_MESSAGE_H_
