// The keys that this worker's grants may be signed with.
#ifndef KMOSAIC_GPU_WORKER_SERVICE_GRANT_KEYS_H_
#define KMOSAIC_GPU_WORKER_SERVICE_GRANT_KEYS_H_

#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/grant.h"

namespace kmosaic {

// Thread-safe.
class GrantKeys {
 public:
  explicit GrantKeys(std::string worker) : worker_(std::move(worker)) {}

  // From each sync. The key before it stays good, for requests on their way while the
  // coordinator was started again.
  void Set(const std::string& key);

  // PERMISSION_DENIED when the grant is not this coordinator's, has expired, or is for
  // another worker or role.
  absl::Status Check(const std::string& grant, v1::Role role, absl::Time now) const;

 private:
  const std::string worker_;
  mutable std::mutex mutex_;
  std::string current_;
  std::string previous_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SERVICE_GRANT_KEYS_H_
