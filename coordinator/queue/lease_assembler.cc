#include "coordinator/queue/lease_assembler.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr size_t kRecentTasks = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<const v1::TaskSpec>> LeaseAssembler::Task(
    const std::string& digest) {
  auto found = recent_.find(digest);
  if (found != recent_.end()) return found->second;
  absl::StatusOr<std::string> bytes = store_.Get(Family::kTaskSpec, digest);
  auto task = std::make_shared<v1::TaskSpec>();
  if (!bytes.ok() || !task->ParseFromString(*bytes)) {
    return absl::DataLossError(
        absl::StrCat("task ", digest, " cannot be read: ", bytes.status().ToString()));
  }
  if (recent_.size() >= kRecentTasks) recent_.clear();
  recent_[digest] = task;
  return task;
}

absl::Status LeaseAssembler::AddSteps(const StoreSnapshot& snapshot, const GrantedItem& granted,
                                      v1::Lease& lease) const {
  auto cursor = snapshot.Scan(Family::kStep, keys::AllOfItem(granted.job_number, granted.item));
  for (; cursor->Valid(); cursor->Next()) {
    v1::StoredStep stored;
    if (!stored.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size()))) {
      return absl::DataLossError("a step row cannot be read");
    }
    *lease.add_steps() = std::move(*stored.mutable_step());
  }
  KMOSAIC_RETURN_IF_ERROR(cursor->status());
  if (static_cast<uint32_t>(lease.steps_size()) != granted.steps) {
    return absl::DataLossError(absl::StrCat("item ", granted.token.item().job(), "/", granted.item,
                                            " has ", lease.steps_size(), " of ", granted.steps,
                                            " steps"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::RunnerSyncResponse> LeaseAssembler::Answer(const SyncResult& result) {
  v1::RunnerSyncResponse response;
  for (const v1::HeldLease& held : result.held) *response.add_held() = held;
  std::unique_ptr<StoreSnapshot> snapshot;
  for (const GrantedItem& granted : result.granted) {
    v1::Lease& lease = *response.add_granted();
    *lease.mutable_token() = granted.token;
    KMOSAIC_ASSIGN_OR_RETURN(std::shared_ptr<const v1::TaskSpec> task, Task(granted.task_digest));
    *lease.mutable_task() = *task;
    *lease.mutable_views() = granted.spec->views(granted.place.view_set);
    lease.set_sample(granted.place.sample);
    auto& jobs = *response.mutable_jobs();
    const std::string& job = granted.token.item().job();
    if (jobs.count(job) == 0) jobs[job] = *granted.spec;
    if (granted.steps == 0) continue;
    if (snapshot == nullptr) snapshot = store_.Snapshot();
    KMOSAIC_RETURN_IF_ERROR(AddSteps(*snapshot, granted, lease));
  }
  return response;
}

}  // namespace kmosaic
