// What an export leaves out, and why.
#ifndef KMOSAIC_COORDINATOR_DATASET_FILTER_H_
#define KMOSAIC_COORDINATOR_DATASET_FILTER_H_

#include <optional>
#include <string>

#include "coordinator/dataset/record.h"
#include "kernelmosaic/v1/dataset.pb.h"

namespace kmosaic {

// INVALID_ARGUMENT for a request that makes no sense.
absl::Status CheckExport(const v1::ExportRequest& request);

// Why this item cannot be a row whatever its conversation holds ("unfinished", "failed",
// "dead", "cancelled", "not_verified"); nothing when it may be one. Looked at before the
// conversation is read.
std::optional<std::string> WhyItemDropped(const v1::Item& item, const v1::ExportRequest& request);

// Why no record could be made, from MakeRecord's status: "no_conversation" or "malformed".
std::string WhyNoRecord(const absl::Status& status);

// Why this record is left out: "emulated", "speedup_unknown", "below_min_speedup".
std::optional<std::string> WhyRecordDropped(const Record& record, const v1::ExportRequest& request);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_FILTER_H_
