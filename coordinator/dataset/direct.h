// Single-turn rows: the task as the model was first told it, and the final solution.
#ifndef KMOSAIC_COORDINATOR_DATASET_DIRECT_H_
#define KMOSAIC_COORDINATOR_DATASET_DIRECT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "coordinator/dataset/record.h"

namespace kmosaic {

// Only for a verified record. `messages` are the recorded messages of the first turn and
// one of the assistant: the final verified source in a fence.
nlohmann::ordered_json DirectRow(const Record& record);

// The source in a fenced block; the fence is longer than any run of backquotes in it.
std::string FencedSource(const v1::Solution& solution);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_DIRECT_H_
