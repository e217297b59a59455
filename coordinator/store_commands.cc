#include "coordinator/store_commands.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "coordinator/queue/store_check.h"
#include "coordinator/store/backup.h"
#include "coordinator/store/rocksdb_task_store.h"
#include "coordinator/store/store_identity.h"

namespace kmosaic {
namespace {

absl::StatusOr<nlohmann::ordered_json> Check(const std::string& data_dir) {
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<RocksDbTaskStore> store,
                           RocksDbTaskStore::OpenReadOnly(StoreDirectory(data_dir)));
  KMOSAIC_ASSIGN_OR_RETURN(uint64_t schema, ReadSchema(*store));
  if (schema != kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store in ", data_dir, " has schema ", schema, " and this program checks ",
                     kSchemaVersion, "; start the coordinator that fits on it once"));
  }
  KMOSAIC_RETURN_IF_ERROR(store->VerifyChecksums());
  KMOSAIC_ASSIGN_OR_RETURN(StoreSummary summary, CheckStore(*store));
  return nlohmann::ordered_json{
      {"data_dir", data_dir},   {"schema", schema},         {"jobs", summary.jobs},
      {"tasks", summary.tasks}, {"items", summary.items},   {"live_items", summary.live},
      {"steps", summary.steps}, {"events", summary.events}, {"dead_letters", summary.dead_letters}};
}

}  // namespace

absl::StatusOr<std::string> CheckDataDirectory(const std::string& data_dir) {
  KMOSAIC_ASSIGN_OR_RETURN(nlohmann::ordered_json found, Check(data_dir));
  return found.dump();
}

absl::StatusOr<std::string> RestoreDataDirectory(const std::string& backup,
                                                 const std::string& data_dir) {
  KMOSAIC_ASSIGN_OR_RETURN(BackupSize size, RestoreBackup(backup, data_dir, RandomId("store")));
  KMOSAIC_ASSIGN_OR_RETURN(nlohmann::ordered_json found, Check(data_dir));
  found["files"] = size.files;
  found["bytes"] = size.bytes;
  return found.dump();
}

}  // namespace kmosaic
