// Which part of a dataset a task belongs to.
#ifndef KMOSAIC_COORDINATOR_DATASET_SPLIT_H_
#define KMOSAIC_COORDINATOR_DATASET_SPLIT_H_

#include <string_view>

namespace kmosaic {

// "train" (90 %), "validation" (5 %) or "test" (5 %), by the SHA-256 of the task's id alone:
// the same in every export of every job, and the same for all conversations on one task.
std::string_view SplitOfTask(std::string_view task_id);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_SPLIT_H_
