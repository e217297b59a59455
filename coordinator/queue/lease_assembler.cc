#include "coordinator/queue/lease_assembler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "kernelmosaic/v1/storage.pb.h"

namespace kmosaic {
absl::Status LeaseAssembler::AddTask(const GrantedItem& granted, v1::Lease& lease) {
  std::pair<uint64_t, uint32_t> key(granted.job_number, granted.place.task);
  if (!last_.has_value() || last_->first != key) {
    absl::StatusOr<std::string> bytes =
        store_.Get(Family::kTask, keys::Task(key.first, key.second));
    v1::StoredTask task;
    if (!bytes.ok() || !task.ParseFromString(*bytes)) {
      return absl::DataLossError(absl::StrCat("task ", key.second, " of job ",
                                              granted.token.item().job(),
                                              " cannot be read: ", bytes.status().ToString()));
    }
    // Granted many times in a row (views x samples) it is kept; otherwise it is handed on.
    *lease.mutable_task() = std::move(*task.mutable_spec());
    if (granted.spec->samples() > 1 || granted.spec->views_size() > 1) {
      last_.emplace(key, lease.task());
    }
    return absl::OkStatus();
  }
  *lease.mutable_task() = last_->second;
  return absl::OkStatus();
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

absl::StatusOr<v1::RunnerSyncResponse> LeaseAssembler::Answer(const SyncResult& result,
                                                              std::set<std::string>* known_jobs) {
  v1::RunnerSyncResponse response;
  for (const v1::HeldLease& held : result.held) *response.add_held() = held;
  std::unique_ptr<StoreSnapshot> snapshot;
  for (const GrantedItem& granted : result.granted) {
    v1::Lease& lease = *response.add_granted();
    *lease.mutable_token() = granted.token;
    KMOSAIC_RETURN_IF_ERROR(AddTask(granted, lease));
    *lease.mutable_views() = granted.spec->views(granted.place.view_set);
    lease.set_sample(granted.place.sample);
    const std::string& job = granted.token.item().job();
    bool first =
        known_jobs == nullptr ? response.jobs().count(job) == 0 : known_jobs->insert(job).second;
    if (first) (*response.mutable_jobs())[job] = *granted.spec;
    if (granted.steps == 0) continue;
    if (snapshot == nullptr) snapshot = store_.Snapshot();
    KMOSAIC_RETURN_IF_ERROR(AddSteps(*snapshot, granted, lease));
  }
  return response;
}

}  // namespace kmosaic
