#include "coordinator/store/task_store.h"

namespace kmosaic {

void WriteBatch::Put(Family family, std::string key, std::string value) {
  bytes_ += key.size() + value.size();
  operations_.push_back({Operation::Kind::kPut, family, std::move(key), std::move(value)});
}

void WriteBatch::Delete(Family family, std::string key) {
  bytes_ += key.size();
  operations_.push_back({Operation::Kind::kDelete, family, std::move(key), {}});
}

void WriteBatch::DeleteRange(Family family, keys::Range range) {
  bytes_ += range.begin.size() + range.end.size();
  operations_.push_back(
      {Operation::Kind::kDeleteRange, family, std::move(range.begin), std::move(range.end)});
}

void WriteBatch::Clear() {
  operations_.clear();
  bytes_ = 0;
}

}  // namespace kmosaic
