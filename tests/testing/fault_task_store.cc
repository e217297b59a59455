#include "tests/testing/fault_task_store.h"

namespace kmosaic {

void FaultTaskStore::FailAfter(int good, Fault fault) {
  good_left_ = good;
  fault_ = fault;
}

void FaultTaskStore::Reopen() {
  good_left_ = -1;
  failure_ = absl::OkStatus();
}

absl::Status FaultTaskStore::Write(const WriteBatch& batch) {
  if (!failure_.ok()) return failure_;
  if (good_left_ == 0) {
    if (fault_ == Fault::kApplied) {
      if (absl::Status status = base_.Write(batch); !status.ok()) return status;
    }
    failure_ = absl::InternalError("injected write failure");
    return failure_;
  }
  if (good_left_ > 0) --good_left_;
  absl::Status status = base_.Write(batch);
  if (status.ok()) ++writes_;
  return status;
}

absl::StatusOr<std::string> FaultTaskStore::Get(Family family, std::string_view key) const {
  return base_.Get(family, key);
}

std::unique_ptr<StoreSnapshot> FaultTaskStore::Snapshot() const { return base_.Snapshot(); }

}  // namespace kmosaic
