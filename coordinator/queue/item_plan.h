// Which task, views and sample an item's number stands for.
#ifndef KMOSAIC_COORDINATOR_QUEUE_ITEM_PLAN_H_
#define KMOSAIC_COORDINATOR_QUEUE_ITEM_PLAN_H_

#include <cstdint>

#include "common/base/enum_names.h"

namespace kmosaic {

struct ItemPlace {
  // Position of the task in the submission.
  uint32_t task = 0;
  // Position of the view set in the spec.
  int view_set = 0;
  uint32_t sample = 0;
};

// Items of a job with `tasks` tasks; may exceed what an item number holds.
uint64_t CountItems(const v1::JobSpec& spec, uint32_t tasks);

// Items go by task, then view set, then sample. `spec` has view sets and samples;
// `number` is below CountItems.
ItemPlace PlaceOf(const v1::JobSpec& spec, uint32_t number);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_ITEM_PLAN_H_
