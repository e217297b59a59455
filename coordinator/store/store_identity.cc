#include "coordinator/store/store_identity.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/store/migrations.h"

namespace kmosaic {
namespace {

absl::StatusOr<uint64_t> ReadNumber(const TaskStore& store, const char* name) {
  absl::StatusOr<std::string> text = store.Get(Family::kMeta, name);
  if (!text.ok()) return text.status();
  uint64_t number = 0;
  if (!absl::SimpleAtoi(*text, &number)) {
    return absl::DataLossError(absl::StrCat("the store's meta entry '", name, "' is '", *text,
                                            "', not a number: restore a backup"));
  }
  return number;
}

}  // namespace

absl::StatusOr<StoreIdentity> StartOn(TaskStore& store, const std::string& fresh_incarnation) {
  StoreIdentity identity;
  absl::StatusOr<uint64_t> schema = ReadNumber(store, keys::kSchemaVersion);
  WriteBatch batch;
  if (absl::IsNotFound(schema.status())) {
    identity.incarnation = fresh_incarnation;
    identity.epoch = 1;
    batch.Put(Family::kMeta, keys::kSchemaVersion, absl::StrCat(kSchemaVersion));
    batch.Put(Family::kMeta, keys::kIncarnation, identity.incarnation);
  } else {
    if (!schema.ok()) return schema.status();
    if (*schema > kSchemaVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat("the store has schema ", *schema, ", this program knows up to ",
                       kSchemaVersion, ": start a newer kmosaic-coordinator on it"));
    }
    if (*schema < kSchemaVersion) KMOSAIC_RETURN_IF_ERROR(Migrate(store, *schema));
    KMOSAIC_ASSIGN_OR_RETURN(identity.incarnation, store.Get(Family::kMeta, keys::kIncarnation));
    KMOSAIC_ASSIGN_OR_RETURN(uint64_t epoch, ReadNumber(store, keys::kEpoch));
    identity.epoch = epoch + 1;
  }
  batch.Put(Family::kMeta, keys::kEpoch, absl::StrCat(identity.epoch));
  KMOSAIC_RETURN_IF_ERROR(Annotate(store.Write(batch), "begin an epoch"));
  return identity;
}

absl::Status Reincarnate(TaskStore& store, const std::string& fresh_incarnation) {
  KMOSAIC_RETURN_IF_ERROR(ReadSchema(store).status());
  WriteBatch batch;
  batch.Put(Family::kMeta, keys::kIncarnation, fresh_incarnation);
  return Annotate(store.Write(batch), "give the store a new incarnation");
}

absl::StatusOr<uint64_t> ReadSchema(const TaskStore& store) {
  return ReadNumber(store, keys::kSchemaVersion);
}

}  // namespace kmosaic
