// Jobs, items and conversations as they stood at one moment, straight from the store.
#ifndef KMOSAIC_COORDINATOR_QUEUE_READER_H_
#define KMOSAIC_COORDINATOR_QUEUE_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/enum_names.h"
#include "coordinator/store/task_store.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {

// One job in a snapshot: everything it returns belongs together. Costs the queue nothing.
// One thread at a time; must not outlive the store, and should not be kept for long (the
// store cannot drop what it sees). Every read fails with DATA_LOSS on a row that cannot be
// understood.
class JobReader {
 public:
  // NOT_FOUND when there is no such job.
  static absl::StatusOr<JobReader> Open(const TaskStore& store, const std::string& job);

  // The job with this number in the store.
  static absl::StatusOr<JobReader> OpenOn(std::shared_ptr<const StoreSnapshot> snapshot,
                                          uint64_t number);

  const std::string& id() const { return job_.id(); }
  // With endpoint.recordings.
  const v1::JobSpec& spec() const { return job_.spec(); }
  v1::JobState state() const;
  uint32_t items() const { return static_cast<uint32_t>(state_.counts().total()); }
  uint32_t tasks() const { return state_.tasks(); }

  // Item without its conversation; OUT_OF_RANGE past the last one. `history` is only
  // filled `with_history`: its attempts, oldest first.
  absl::StatusOr<v1::Item> ReadItem(uint32_t number, bool with_history) const;

  // The task of item `number`.
  absl::StatusOr<v1::TaskSpec> ReadTask(uint32_t number) const;

  // Its recorded conversation, in order.
  absl::StatusOr<std::vector<v1::Step>> ReadSteps(uint32_t number) const;

  // Calls `visit` for each item from `first` on, in order and without history, until it
  // returns false or an error, which is passed on.
  using Visit = std::function<absl::StatusOr<bool>(const v1::Item&)>;
  absl::Status ForEachItem(uint32_t first, const Visit& visit) const;

 private:
  JobReader() = default;
  absl::StatusOr<v1::StoredTask> ReadTaskRow(uint32_t number) const;
  // `row` is null for an item that nobody touched yet.
  absl::StatusOr<v1::Item> Assemble(uint32_t number, const v1::StoredItem* row) const;
  // StoredItem of an item that was granted at least once; nothing for another one.
  absl::StatusOr<std::optional<v1::StoredItem>> ReadRowOf(uint32_t number) const;
  absl::Status AddLastError(uint32_t number, const v1::StoredItem& row, v1::Item& item) const;

  std::shared_ptr<const StoreSnapshot> snapshot_;
  uint64_t number_ = 0;
  v1::StoredJob job_;
  v1::StoredJobState state_;
  // The task whose id was asked for last.
  mutable std::optional<std::pair<uint32_t, std::string>> task_id_;
};

struct DeadLetterPage {
  std::vector<v1::Item> items;
  // Where the next page begins; empty at the end.
  std::string next_page_token;
};

// Up to `limit` FAILED and DEAD items with their last errors, of one job or (empty) of all,
// oldest job first. NOT_FOUND when there is no such job, INVALID_ARGUMENT for a page token
// that is not one.
absl::StatusOr<DeadLetterPage> ReadDeadLetters(const TaskStore& store, const std::string& job,
                                               const std::string& page_token, size_t limit);

// The same of all jobs in several stores, one store after the other.
absl::StatusOr<DeadLetterPage> ReadDeadLetters(const std::vector<const TaskStore*>& stores,
                                               const std::string& page_token, size_t limit);

struct EventPage {
  std::vector<v1::JobEvent> events;
  // The job is over and nothing follows these events, unless it is retried.
  bool ended = false;
};

// Up to `limit` events of a job from `from_seq` on (0 and 1: from the first). NOT_FOUND
// when there is no such job.
absl::StatusOr<EventPage> ReadEvents(const TaskStore& store, const std::string& job,
                                     uint64_t from_seq, size_t limit);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_QUEUE_READER_H_
