// Durable state of the coordinator: ordered keys and values in named families.
#ifndef KMOSAIC_COORDINATOR_STORE_TASK_STORE_H_
#define KMOSAIC_COORDINATOR_STORE_TASK_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/keys.h"

namespace kmosaic {

// Changes that take effect together, in the order in which they were added.
class WriteBatch {
 public:
  struct Operation {
    enum class Kind : uint8_t { kPut, kDelete, kDeleteRange };
    Kind kind;
    Family family;
    std::string key;    // first key of a range
    std::string value;  // value of a put, end (exclusive) of a range
  };

  void Put(Family family, std::string key, std::string value);
  // Fine when there is no such key.
  void Delete(Family family, std::string key);
  // Costs every later scan something: for dropping a whole job, not single keys.
  void DeleteRange(Family family, keys::Range range);

  void Clear();
  bool empty() const { return operations_.empty(); }
  size_t bytes() const { return bytes_; }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::vector<Operation> operations_;
  size_t bytes_ = 0;
};

// Forward iteration over one family. Keys and values are valid until Next. One thread
// at a time; must not outlive what it came from.
class StoreCursor {
 public:
  virtual ~StoreCursor() = default;
  virtual bool Valid() const = 0;
  virtual void Next() = 0;
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  // Why it is not Valid: OK at the end of the range, otherwise what went wrong. To be
  // checked after every loop.
  virtual absl::Status status() const = 0;
};

// The store at one moment, across families. Thread-safe; must not outlive the store.
class StoreSnapshot {
 public:
  virtual ~StoreSnapshot() = default;
  // NOT_FOUND when there is no such key.
  virtual absl::StatusOr<std::string> Get(Family family, std::string_view key) const = 0;
  // Keys in [range.begin, range.end) in byte order; an empty `end` is no bound.
  virtual std::unique_ptr<StoreCursor> Scan(Family family, const keys::Range& range) const = 0;
};

// Execution: calls block until done. Reads may come from any thread at any time.
// Ordering: one writer; a batch is seen whole or not at all.
// Durability: an OK from Write means that the batch is on disk (fdatasync done).
// Failure: after a failed Write nobody knows whether the batch is on disk. Every further
// Write is refused with the first failure; the owner reopens the store (in practice: the
// process ends and is started again). Reads go on.
// Destruction: closes the files; snapshots and cursors must be gone.
class TaskStore {
 public:
  virtual ~TaskStore() = default;
  virtual absl::Status Write(const WriteBatch& batch) = 0;
  // The newest value; NOT_FOUND when there is no such key.
  virtual absl::StatusOr<std::string> Get(Family family, std::string_view key) const = 0;
  virtual std::unique_ptr<StoreSnapshot> Snapshot() const = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_TASK_STORE_H_
