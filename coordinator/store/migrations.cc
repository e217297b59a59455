#include "coordinator/store/migrations.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/store/store_identity.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

constexpr size_t kBatchBytes = 4u << 20;

template <typename Message>
absl::StatusOr<Message> Parse(std::string_view bytes, Family family) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return absl::DataLossError(absl::StrCat("migration: a row of ", std::string(FamilyName(family)),
                                          " cannot be read; restore a backup"));
}

class FromSchema1 {
 public:
  explicit FromSchema1(TaskStore& store) : store_(store), snapshot_(store.Snapshot()) {}

  absl::Status Run() {
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kJob, {"", ""});
    for (; cursor->Valid(); cursor->Next()) {
      std::optional<uint64_t> number = keys::ParseJob(cursor->key());
      if (!number.has_value()) return absl::DataLossError("migration: a job's key is not one");
      KMOSAIC_RETURN_IF_ERROR(MigrateJob(*number));
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    batch_.DeleteRange(Family::kTaskSpec, {"", "g"});
    batch_.Put(Family::kMeta, keys::kSchemaVersion, "2");
    return Flush(0);
  }

 private:
  absl::Status MigrateJob(uint64_t number) {
    KMOSAIC_ASSIGN_OR_RETURN(std::string row, snapshot_->Get(Family::kJobState, keys::Job(number)));
    KMOSAIC_ASSIGN_OR_RETURN(v1::StoredJobState state,
                             Parse<v1::StoredJobState>(row, Family::kJobState));
    KMOSAIC_RETURN_IF_ERROR(MigrateTasks(number, state));
    KMOSAIC_RETURN_IF_ERROR(MigrateItems(number, state));
    batch_.Put(Family::kJobState, keys::Job(number), state.SerializeAsString());
    return Flush(kBatchBytes);
  }

  absl::Status MigrateTasks(uint64_t number, v1::StoredJobState& state) {
    uint32_t tasks = 0;
    size_t largest = 0;
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kTask, keys::OfJob(number));
    for (; cursor->Valid(); cursor->Next(), ++tasks) {
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredTask task,
                               Parse<v1::StoredTask>(cursor->value(), Family::kTask));
      if (!task.has_spec()) {
        absl::StatusOr<std::string> spec = snapshot_->Get(Family::kTaskSpec, task.digest());
        if (!spec.ok()) return Annotate(spec.status(), "migration: the TaskSpec of a task");
        KMOSAIC_ASSIGN_OR_RETURN(*task.mutable_spec(),
                                 Parse<v1::TaskSpec>(*spec, Family::kTaskSpec));
        task.clear_id();
        task.clear_digest();
        batch_.Put(Family::kTask, std::string(cursor->key()), task.SerializeAsString());
      }
      largest = std::max(largest, task.spec().ByteSizeLong());
      KMOSAIC_RETURN_IF_ERROR(Flush(kBatchBytes));
    }
    state.set_tasks(tasks);
    state.set_items_per_task(tasks == 0 ? 1
                                        : static_cast<uint32_t>(state.counts().total() / tasks));
    state.set_largest_task(static_cast<uint32_t>(largest));
    return cursor->status();
  }

  absl::Status MigrateItems(uint64_t number, v1::StoredJobState& state) {
    uint32_t touched = 0;
    // What an earlier try has moved already.
    std::unique_ptr<StoreCursor> live = snapshot_->Scan(Family::kLive, keys::OfJob(number));
    for (; live->Valid(); live->Next()) ++touched;
    KMOSAIC_RETURN_IF_ERROR(live->status());
    std::unique_ptr<StoreCursor> cursor = snapshot_->Scan(Family::kItem, keys::OfJob(number));
    for (; cursor->Valid(); cursor->Next(), ++touched) {
      std::string key(cursor->key());
      std::optional<keys::Numbered> place = keys::ParseNumbered(key);
      if (!place.has_value()) return absl::DataLossError("migration: an item's key is not one");
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredItem item,
                               Parse<v1::StoredItem>(cursor->value(), Family::kItem));
      if (item.steps() > 0) {
        KMOSAIC_ASSIGN_OR_RETURN(uint64_t bytes, StepBytes(number, place->number));
        item.set_step_bytes(bytes);
      }
      switch (item.state()) {
        case v1::ITEM_STATE_READY:
        case v1::ITEM_STATE_DELAYED:
        case v1::ITEM_STATE_LEASED:
          batch_.Put(Family::kLive, key, item.SerializeAsString());
          batch_.Delete(Family::kItem, key);
          break;
        case v1::ITEM_STATE_FAILED:
        case v1::ITEM_STATE_DEAD:
          batch_.Put(Family::kDeadLetter, key, "");
          batch_.Put(Family::kItem, key, item.SerializeAsString());
          break;
        default:
          batch_.Put(Family::kItem, key, item.SerializeAsString());
          break;
      }
      KMOSAIC_RETURN_IF_ERROR(Flush(kBatchBytes));
    }
    state.set_touched(touched);
    return cursor->status();
  }

  absl::StatusOr<uint64_t> StepBytes(uint64_t number, uint32_t item) const {
    uint64_t bytes = 0;
    std::unique_ptr<StoreCursor> cursor =
        snapshot_->Scan(Family::kStep, keys::AllOfItem(number, item));
    for (; cursor->Valid(); cursor->Next()) {
      KMOSAIC_ASSIGN_OR_RETURN(v1::StoredStep step,
                               Parse<v1::StoredStep>(cursor->value(), Family::kStep));
      bytes += step.step().ByteSizeLong();
    }
    KMOSAIC_RETURN_IF_ERROR(cursor->status());
    return bytes;
  }

  absl::Status Flush(size_t above_bytes) {
    if (batch_.bytes() < above_bytes) return absl::OkStatus();
    absl::Status status = store_.Write(batch_);
    batch_.Clear();
    return Annotate(status, "migration");
  }

  TaskStore& store_;
  const std::unique_ptr<StoreSnapshot> snapshot_;
  WriteBatch batch_;
};

}  // namespace

absl::Status Migrate(TaskStore& store, uint64_t from) {
  if (from != 1) {
    return absl::DataLossError(absl::StrCat("the store says that it has schema ", from,
                                            ", which never was: restore a backup"));
  }
  return FromSchema1(store).Run();
}

}  // namespace kmosaic
