// Multi-turn rows: the whole conversation as the model saw it.
#ifndef KMOSAIC_COORDINATOR_DATASET_TRAJECTORY_H_
#define KMOSAIC_COORDINATOR_DATASET_TRAJECTORY_H_

#include <nlohmann/json.hpp>

#include "coordinator/dataset/record.h"

namespace kmosaic {

// The common columns, and `turns` with what came of each reply.
nlohmann::ordered_json TrajectoryRow(const Record& record);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_TRAJECTORY_H_
