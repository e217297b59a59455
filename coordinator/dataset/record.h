// One conversation with everything that a dataset says about it, and the columns that all
// export formats share. docs/datasets.md is the reference of the schema.
#ifndef KMOSAIC_COORDINATOR_DATASET_RECORD_H_
#define KMOSAIC_COORDINATOR_DATASET_RECORD_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/dataset/conversation.h"
#include "kernelmosaic/v1/job.pb.h"
#include "kernelmosaic/v1/task.pb.h"

namespace kmosaic {

// Columns are only added within a version; a change of meaning or type is a new one.
inline constexpr char kDatasetSchema[] = "kernelmosaic/1";

struct Record {
  std::string job;
  v1::JobSpec spec;
  v1::Item item;
  v1::TaskSpec task;
  std::vector<v1::Step> steps;
  Conversation conversation;
  // Position in conversation.turns of the best verified version; unset where none was
  // verified.
  std::optional<size_t> best_turn;

  // The result of the best version, or of the last one that was evaluated; null when there
  // was none.
  const v1::TurnResult* Deciding() const;
  // Only an emulated device judged it.
  bool Emulated() const;
};

// Puts a record together from what the queue holds. Errors as ReadConversation; also
// INVALID_ARGUMENT when the item's result says verified and the step that it names does
// not.
absl::StatusOr<Record> MakeRecord(std::string job, v1::JobSpec spec, v1::Item item,
                                  v1::TaskSpec task, std::vector<v1::Step> steps);

// The columns of every format, in their order: `messages` comes from the caller.
nlohmann::ordered_json CommonColumns(const Record& record, std::string_view format,
                                     const std::vector<v1::ChatMessage>& messages);

// One line of JSON in valid UTF-8, without a newline.
std::string ToLine(const nlohmann::ordered_json& row);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_RECORD_H_
