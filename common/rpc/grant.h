// Signed, expiring permission of the coordinator to use one slot of one worker.
#ifndef KMOSAIC_COMMON_RPC_GRANT_H_
#define KMOSAIC_COMMON_RPC_GRANT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/enum_names.h"

namespace kmosaic {

struct Grant {
  std::string slot;
  std::string worker;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  // Wall time: coordinator and worker need clocks that agree within a minute, which is
  // added on top.
  absl::Time expires;
};

// Text without spaces: the fields and an HMAC-SHA256 over them.
std::string SignGrant(const Grant& grant, std::string_view key);

// PERMISSION_DENIED when it is malformed, forged, or expired (saying which).
absl::StatusOr<Grant> VerifyGrant(std::string_view text, std::string_view key, absl::Time now);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_RPC_GRANT_H_
