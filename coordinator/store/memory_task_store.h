// The store without a disk, for tests and the simulator.
#ifndef KMOSAIC_COORDINATOR_STORE_MEMORY_TASK_STORE_H_
#define KMOSAIC_COORDINATOR_STORE_MEMORY_TASK_STORE_H_

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "coordinator/store/task_store.h"

namespace kmosaic {

// Never fails. Snapshots share the maps until the next Write to that family, which
// then copies it.
class MemoryTaskStore : public TaskStore {
 public:
  MemoryTaskStore();
  absl::Status Write(const WriteBatch& batch) override;
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const override;
  std::unique_ptr<StoreSnapshot> Snapshot() const override;

  using Map = std::map<std::string, std::string, std::less<>>;
  using Maps = std::array<std::shared_ptr<Map>, kFamilies.size()>;

 private:
  mutable std::mutex mutex_;
  Maps maps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_MEMORY_TASK_STORE_H_
