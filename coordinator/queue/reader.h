// Jobs, items and conversations as they stood at one moment, straight from the store.
#ifndef KMOSAIC_COORDINATOR_QUEUE_READER_H_
#define KMOSAIC_COORDINATOR_QUEUE_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/enum_names.h"
#include "coordinator/store/task_store.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {

// One job in a snapshot: everything it returns belongs together. Costs the queue nothing.
// One thread at a time; must not outlive the store, and should not be kept for long (the
// store cannot drop what it sees).
class JobReader {
 public:
  // NOT_FOUND when there is no such job.
  static absl::StatusOr<JobReader> Open(const TaskStore& store, const std::string& job);

  const v1::JobSpec& spec() const { return job_.spec(); }
  // Number of the job inside the store: the first part of its keys.
  uint64_t number() const { return number_; }
  v1::Job job() const;
  uint32_t items() const { return job_.items(); }
  uint32_t tasks() const { return job_.tasks(); }

  // Item with everything but its conversation; OUT_OF_RANGE past the last one.
  // `with_history`: also its attempts, oldest first.
  absl::StatusOr<v1::Item> ReadItem(uint32_t number, bool with_history) const;

  absl::StatusOr<v1::TaskSpec> ReadTask(const v1::Item& item) const;

  // The item's recorded conversation, in order.
  absl::StatusOr<std::vector<v1::Step>> ReadSteps(uint32_t item) const;

  // Calls `visit` for each item from `first` on, in order, until it returns false or an
  // error. Without history.
  absl::Status ForEachItem(uint32_t first,
                           const std::function<absl::StatusOr<bool>(const v1::Item&)>& visit) const;

 private:
  JobReader() = default;
  absl::StatusOr<v1::Item> Assemble(uint32_t number, const v1::StoredItem* row) const;

  std::shared_ptr<const StoreSnapshot> snapshot_;
  uint64_t number_ = 0;
  v1::StoredJob job_;
  v1::StoredJobState state_;
  // Id of each task, by position.
  std::vector<v1::StoredTask> task_table_;
};

// Up to `limit` events from `from_seq` on (0 and 1: from the first), and whether the last
// of them is the one that ended the job. NOT_FOUND when there is no such job.
struct EventPage {
  std::vector<v1::JobEvent> events;
  // Nothing will follow, unless the job is retried.
  bool ended = false;
};
absl::StatusOr<EventPage> ReadEvents(const TaskStore& store, const std::string& job,
                                     uint64_t from_seq, size_t limit);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_READER_H_
