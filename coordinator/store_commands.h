// What kmosaic-coordinator does with a data directory instead of serving it.
#ifndef KMOSAIC_COORDINATOR_STORE_COMMANDS_H_
#define KMOSAIC_COORDINATOR_STORE_COMMANDS_H_

#include <string>

#include "absl/status/statusor.h"

namespace kmosaic {

// Both print nothing and return what they found as one JSON object.

// Verifies checksums and every row of the store in `data_dir` (also of a backup). Changes
// nothing; best on a coordinator that is stopped. DATA_LOSS when something is wrong.
absl::StatusOr<std::string> CheckDataDirectory(const std::string& data_dir);

// RestoreBackup, then CheckDataDirectory.
absl::StatusOr<std::string> RestoreDataDirectory(const std::string& backup,
                                                 const std::string& data_dir);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_STORE_COMMANDS_H_
