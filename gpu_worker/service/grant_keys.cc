#include "gpu_worker/service/grant_keys.h"

#include "absl/strings/str_cat.h"

namespace kmosaic {

void GrantKeys::Set(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (key == current_) return;
  previous_ = std::move(current_);
  current_ = key;
}

absl::Status GrantKeys::Check(const std::string& grant, v1::Role role, absl::Time now) const {
  std::string current;
  std::string previous;
  {
    std::lock_guard lock(mutex_);
    current = current_;
    previous = previous_;
  }
  if (current.empty()) {
    return absl::PermissionDeniedError("this worker has no coordinator yet, so no grant is valid");
  }
  absl::StatusOr<Grant> verified = VerifyGrant(grant, current, now);
  if (!verified.ok() && !previous.empty()) {
    if (auto older = VerifyGrant(grant, previous, now); older.ok()) verified = older;
  }
  if (!verified.ok()) return verified.status();
  if (verified->worker != worker_) {
    return absl::PermissionDeniedError(
        absl::StrCat("grant is for worker ", verified->worker, ", this is ", worker_));
  }
  if (verified->role != role) {
    return absl::PermissionDeniedError(absl::StrCat("grant is for role ", RoleName(verified->role),
                                                    ", the request needs ", RoleName(role)));
  }
  return absl::OkStatus();
}

}  // namespace kmosaic
