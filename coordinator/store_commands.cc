#include "coordinator/store_commands.h"

#include <algorithm>
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

absl::StatusOr<StoreSummary> CheckShard(const std::string& directory) {
  KMOSAIC_ASSIGN_OR_RETURN(std::unique_ptr<RocksDbTaskStore> store,
                           RocksDbTaskStore::OpenReadOnly(directory));
  KMOSAIC_ASSIGN_OR_RETURN(uint64_t schema, ReadSchema(*store));
  if (schema != kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store in ", directory, " has schema ", schema, " and this program checks ",
        kSchemaVersion, "; start the coordinator that fits on it once"));
  }
  KMOSAIC_RETURN_IF_ERROR(store->VerifyChecksums());
  return CheckStore(*store);
}

absl::StatusOr<nlohmann::ordered_json> Check(const std::string& data_dir) {
  StoreSummary sum;
  size_t shards = std::max<size_t>(CountStores(data_dir), 1);
  for (size_t shard = 0; shard < shards; ++shard) {
    KMOSAIC_ASSIGN_OR_RETURN(StoreSummary each, CheckShard(StoreDirectory(data_dir, shard)));
    sum.jobs += each.jobs;
    sum.tasks += each.tasks;
    sum.items += each.items;
    sum.live += each.live;
    sum.steps += each.steps;
    sum.events += each.events;
    sum.dead_letters += each.dead_letters;
  }
  return nlohmann::ordered_json{{"data_dir", data_dir},   {"schema", kSchemaVersion},
                                {"shards", shards},       {"jobs", sum.jobs},
                                {"tasks", sum.tasks},     {"items", sum.items},
                                {"live_items", sum.live}, {"steps", sum.steps},
                                {"events", sum.events},   {"dead_letters", sum.dead_letters}};
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
