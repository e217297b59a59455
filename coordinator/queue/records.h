// Jobs and items as the sequencer keeps them in memory, and as they stand on disk.
#ifndef KMOSAIC_COORDINATOR_QUEUE_RECORDS_H_
#define KMOSAIC_COORDINATOR_QUEUE_RECORDS_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/time/time.h"
#include "common/base/enum_names.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {

// Of a LEASED item.
struct LeaseRecord {
  std::string runner;
  absl::Time started;
  // Steady time at which it is over unless renewed.
  absl::Duration deadline;
  // Steady time past which it is not renewed: set when its job is cancelled.
  absl::Duration latest = absl::InfiniteDuration();
  // The holder was told to stop.
  bool cancel_told = false;
  // Digests of the steps that this holder recorded since the process began; the first
  // one is of step `first_digest`.
  uint32_t first_digest = 0;
  std::vector<std::string> digests;
};

struct ItemRecord {
  v1::ItemState state = v1::ITEM_STATE_READY;
  v1::AttemptEnd ended = v1::ATTEMPT_END_UNSPECIFIED;
  uint32_t attempts = 0;
  uint32_t charged_attempts = 0;
  uint32_t holder_deaths = 0;
  uint32_t deaths_since_step = 0;
  // In millionths; StoredItem says what it is.
  uint32_t blame_since_step = 0;
  uint32_t infrastructure_failures = 0;
  uint32_t steps = 0;
  uint64_t lease_epoch = 0;
  absl::Time updated;
  // While DELAYED: for the disk, and the same moment in steady time.
  absl::Time not_before;
  absl::Duration due;
  std::vector<std::string> failed_workers;
  // Serialized bytes of its steps.
  uint64_t step_bytes = 0;
  // While LEASED.
  std::unique_ptr<LeaseRecord> lease;
};

struct JobRecord {
  uint64_t number = 0;
  std::string id;
  std::shared_ptr<const v1::JobSpec> spec;
  // The same without endpoint.recordings, which may be large and which only runners need.
  v1::JobSpec shown_spec;
  std::string request_id;
  std::string request_digest;
  absl::Time created;
  // Serialized bytes of `spec`.
  size_t spec_bytes = 0;
  v1::StoredJobState state;
  // Items that were granted at least once and are not final, by number; also those that
  // became final in this batch. Everything else is on disk alone.
  std::unordered_map<uint32_t, ItemRecord> items;
  // Numbers of those in `items` that are READY.
  std::set<uint32_t> returned;
  // Hashes of the ids of all tasks: from the first Extend on, and in the batch that made
  // the job.
  std::unique_ptr<std::unordered_set<uint64_t>> task_ids;

  uint32_t total_items() const { return static_cast<uint32_t>(state.counts().total()); }
  // Items that were never granted.
  uint32_t untouched() const { return total_items() - state.touched(); }
};

void ToStored(const ItemRecord& item, v1::StoredItem& stored);
// Without lease deadlines and `due`, which are the reader's to set.
ItemRecord FromStored(const v1::StoredItem& stored);

// A StoredTask from its serialized TaskSpec.
std::string StoredTaskRow(std::string_view serialized_spec);

v1::JobSpec WithoutRecordings(const v1::JobSpec& spec);

// For replies.
v1::Job ToJob(const JobRecord& job);

google::protobuf::Timestamp ToTimestamp(absl::Time time);
absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp);
google::protobuf::Duration ToProtoDuration(absl::Duration duration);
absl::Duration FromProtoDuration(const google::protobuf::Duration& duration);

// The same bytes for the same content (maps in key order), within one build.
std::string SerializeDeterministic(const google::protobuf::MessageLite& message);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_RECORDS_H_
