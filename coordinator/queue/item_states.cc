#include "coordinator/queue/item_states.h"

#include <array>
#include <utility>

namespace kmosaic {
namespace {

constexpr std::array<std::pair<v1::ItemState, v1::ItemState>, 15> kMoves = {{
    {v1::ITEM_STATE_READY, v1::ITEM_STATE_LEASED},
    {v1::ITEM_STATE_READY, v1::ITEM_STATE_CANCELLED},
    {v1::ITEM_STATE_DELAYED, v1::ITEM_STATE_READY},
    {v1::ITEM_STATE_DELAYED, v1::ITEM_STATE_CANCELLED},
    {v1::ITEM_STATE_LEASED, v1::ITEM_STATE_DONE},
    {v1::ITEM_STATE_LEASED, v1::ITEM_STATE_READY},
    {v1::ITEM_STATE_LEASED, v1::ITEM_STATE_DELAYED},
    {v1::ITEM_STATE_LEASED, v1::ITEM_STATE_FAILED},
    {v1::ITEM_STATE_LEASED, v1::ITEM_STATE_DEAD},
    {v1::ITEM_STATE_LEASED, v1::ITEM_STATE_CANCELLED},
    {v1::ITEM_STATE_FAILED, v1::ITEM_STATE_READY},
    {v1::ITEM_STATE_FAILED, v1::ITEM_STATE_CANCELLED},
    {v1::ITEM_STATE_DEAD, v1::ITEM_STATE_READY},
    {v1::ITEM_STATE_DEAD, v1::ITEM_STATE_CANCELLED},
    {v1::ITEM_STATE_CANCELLED, v1::ITEM_STATE_READY},
}};

}  // namespace

bool MayMove(v1::ItemState from, v1::ItemState to) {
  for (const auto& move : kMoves) {
    if (move.first == from && move.second == to) return true;
  }
  return false;
}

bool IsFinal(v1::ItemState state) {
  return state == v1::ITEM_STATE_DONE || state == v1::ITEM_STATE_FAILED ||
         state == v1::ITEM_STATE_CANCELLED || state == v1::ITEM_STATE_DEAD;
}

bool IsDeadLetter(v1::ItemState state) {
  return state == v1::ITEM_STATE_FAILED || state == v1::ITEM_STATE_DEAD;
}

uint64_t CountOf(const v1::JobCounts& counts, v1::ItemState state) {
  switch (state) {
    case v1::ITEM_STATE_READY:
      return counts.ready();
    case v1::ITEM_STATE_DELAYED:
      return counts.delayed();
    case v1::ITEM_STATE_LEASED:
      return counts.leased();
    case v1::ITEM_STATE_DONE:
      return counts.done();
    case v1::ITEM_STATE_FAILED:
      return counts.failed();
    case v1::ITEM_STATE_CANCELLED:
      return counts.cancelled();
    case v1::ITEM_STATE_DEAD:
      return counts.dead();
    default:
      return 0;
  }
}

void AddToCount(v1::JobCounts& counts, v1::ItemState state, int64_t by) {
  uint64_t value = CountOf(counts, state) + static_cast<uint64_t>(by);
  switch (state) {
    case v1::ITEM_STATE_READY:
      counts.set_ready(value);
      break;
    case v1::ITEM_STATE_DELAYED:
      counts.set_delayed(value);
      break;
    case v1::ITEM_STATE_LEASED:
      counts.set_leased(value);
      break;
    case v1::ITEM_STATE_DONE:
      counts.set_done(value);
      break;
    case v1::ITEM_STATE_FAILED:
      counts.set_failed(value);
      break;
    case v1::ITEM_STATE_CANCELLED:
      counts.set_cancelled(value);
      break;
    case v1::ITEM_STATE_DEAD:
      counts.set_dead(value);
      break;
    default:
      break;
  }
}

v1::JobState JobStateOf(const v1::StoredJobState& state) {
  if (state.cancelled()) return v1::JOB_STATE_CANCELLED;
  if (state.has_finished()) return v1::JOB_STATE_FINISHED;
  return state.paused() ? v1::JOB_STATE_PAUSED : v1::JOB_STATE_RUNNING;
}

}  // namespace kmosaic
