#include "coordinator/queue/item_plan.h"

namespace kmosaic {
namespace {

uint32_t SetsOfEachTask(const v1::JobSpec& spec) {
  if (spec.assign() == v1::VIEW_ASSIGNMENT_ROUND_ROBIN) return 1;
  return static_cast<uint32_t>(spec.views_size());
}

}  // namespace

uint64_t CountItems(const v1::JobSpec& spec, uint32_t tasks) {
  return uint64_t{tasks} * SetsOfEachTask(spec) * spec.samples();
}

ItemPlace PlaceOf(const v1::JobSpec& spec, uint32_t number) {
  ItemPlace place;
  place.sample = number % spec.samples();
  uint32_t pair = number / spec.samples();
  uint32_t sets = SetsOfEachTask(spec);
  place.task = pair / sets;
  place.view_set = spec.assign() == v1::VIEW_ASSIGNMENT_ROUND_ROBIN
                       ? static_cast<int>(place.task % static_cast<uint32_t>(spec.views_size()))
                       : static_cast<int>(pair % sets);
  return place;
}

}  // namespace kmosaic
