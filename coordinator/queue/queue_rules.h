// The numbers that the queue goes by; each default stands here and nowhere else.
#ifndef KMOSAIC_COORDINATOR_QUEUE_QUEUE_RULES_H_
#define KMOSAIC_COORDINATOR_QUEUE_QUEUE_RULES_H_

#include <cstdint>

#include "absl/time/time.h"

namespace kmosaic {

struct QueueRules {
  // A lease that its holder has not renewed for this long is over.
  absl::Duration lease_ttl = absl::Seconds(30);
  // Runners are told to sync this often; also the longest that a Sync is held back.
  absl::Duration sync_interval = absl::Seconds(10);
  // A holder that was told to stop keeps its lease at most this long.
  absl::Duration cancel_grace = absl::Seconds(60);
  // Retries wait uniform in [0, min(cap, base * 2^failures)].
  absl::Duration backoff_base = absl::Seconds(1);
  absl::Duration backoff_cap = absl::Minutes(5);
  // An item is DEAD once so much blame, or so many deaths of holders, came together without
  // a recorded step between them. A death blames each of the items that the holder held by
  // 1 / (their number): one that held many says little about each.
  uint32_t max_blame = 3;
  uint32_t max_holder_deaths = 30;
  // Different workers that failed an item without a recorded step between them, after
  // which it is DEAD.
  uint32_t max_failed_workers = 3;
  // A job that could be served rises by one priority band each time that this many grants
  // went to others.
  uint64_t ageing_grants = 50;
  // Most leases in one reply, and most bytes of them with the specs of their jobs; one
  // lease is given in any case. The largest spec (recordings), task and conversation
  // together stay below what a message may hold (common/rpc/channel.h).
  uint32_t max_grants = 256;
  size_t max_grant_bytes = 48u << 20;
  // Steps of one conversation, serialized.
  size_t max_conversation_bytes = 20u << 20;
  // Items in no final state, over all jobs; more are refused.
  uint64_t max_open_items = 20'000'000;
  // Of one job, by Extend.
  uint64_t max_job_tasks = 10'000'000;
  uint64_t max_job_items = 100'000'000;
  // Attempts that are kept for an item; older ones are dropped.
  uint32_t max_history = 100;
  // A runner that has not synced for this long is forgotten.
  absl::Duration runner_memory = absl::Minutes(5);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_QUEUE_RULES_H_
