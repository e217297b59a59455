// A store whose writes go wrong on demand.
#ifndef KMOSAIC_TESTS_TESTING_FAULT_TASK_STORE_H_
#define KMOSAIC_TESTS_TESTING_FAULT_TASK_STORE_H_

#include <memory>
#include <string>

#include "coordinator/store/task_store.h"

namespace kmosaic {

// One thread at a time. Keeps the contract of TaskStore: after a failed write every
// further one is refused, until Reopen.
class FaultTaskStore : public TaskStore {
 public:
  enum class Fault {
    // The batch is not on disk.
    kLost,
    // The batch is on disk, and the caller does not learn of it.
    kApplied,
  };

  // `base` must outlive this.
  explicit FaultTaskStore(TaskStore& base) : base_(base) {}

  // The write after `good` further ones fails.
  void FailAfter(int good, Fault fault);
  // As if the process had been started again on the same disk.
  void Reopen();

  absl::Status Write(const WriteBatch& batch) override;
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const override;
  std::unique_ptr<StoreSnapshot> Snapshot() const override;

  // Writes that succeeded.
  int writes() const { return writes_; }

 private:
  TaskStore& base_;
  int writes_ = 0;
  int good_left_ = -1;
  Fault fault_ = Fault::kLost;
  absl::Status failure_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_TESTING_FAULT_TASK_STORE_H_
