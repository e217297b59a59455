#include "coordinator/store/memory_task_store.h"

#include <utility>

namespace kmosaic {
namespace {

using Map = MemoryTaskStore::Map;

size_t Index(Family family) { return static_cast<size_t>(family); }

absl::StatusOr<std::string> Find(const Map& map, std::string_view key) {
  auto found = map.find(key);
  if (found == map.end()) return absl::NotFoundError("no such key");
  return found->second;
}

class MemoryCursor : public StoreCursor {
 public:
  MemoryCursor(const Map& map, const keys::Range& range)
      : at_(map.lower_bound(range.begin)),
        end_(range.end.empty() ? map.end() : map.lower_bound(range.end)) {
    if (!range.end.empty() && range.end <= range.begin) at_ = end_;
  }
  bool Valid() const override { return at_ != end_; }
  void Next() override { ++at_; }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override { return at_->second; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  Map::const_iterator at_;
  Map::const_iterator end_;
};

class MemorySnapshot : public StoreSnapshot {
 public:
  MemorySnapshot(std::mutex& mutex, const MemoryTaskStore::Maps& maps)
      : mutex_(mutex), maps_(maps) {}
  ~MemorySnapshot() override {
    // Under the store's lock, so that a Write that finds a map unshared comes after every
    // read of it.
    std::lock_guard lock(mutex_);
    maps_ = {};
  }
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const override {
    return Find(*maps_[Index(family)], key);
  }
  std::unique_ptr<StoreCursor> Scan(Family family, const keys::Range& range) const override {
    return std::make_unique<MemoryCursor>(*maps_[Index(family)], range);
  }

 private:
  std::mutex& mutex_;
  MemoryTaskStore::Maps maps_;
};

}  // namespace

MemoryTaskStore::MemoryTaskStore() {
  for (std::shared_ptr<Map>& map : maps_) map = std::make_shared<Map>();
}

absl::Status MemoryTaskStore::Write(const WriteBatch& batch) {
  std::lock_guard lock(mutex_);
  for (const WriteBatch::Operation& operation : batch.operations()) {
    std::shared_ptr<Map>& map = maps_[Index(operation.family)];
    if (map.use_count() > 1) map = std::make_shared<Map>(*map);
    switch (operation.kind) {
      case WriteBatch::Operation::Kind::kPut:
        (*map)[operation.key] = operation.value;
        break;
      case WriteBatch::Operation::Kind::kDelete:
        map->erase(operation.key);
        break;
      case WriteBatch::Operation::Kind::kDeleteRange:
        if (operation.key < operation.value) {
          map->erase(map->lower_bound(operation.key), map->lower_bound(operation.value));
        }
        break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryTaskStore::Get(Family family, std::string_view key) const {
  std::lock_guard lock(mutex_);
  return Find(*maps_[Index(family)], key);
}

std::unique_ptr<StoreSnapshot> MemoryTaskStore::Snapshot() const {
  std::lock_guard lock(mutex_);
  return std::make_unique<MemorySnapshot>(mutex_, maps_);
}

}  // namespace kmosaic
