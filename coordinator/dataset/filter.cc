#include "coordinator/dataset/filter.h"

#include <cmath>

namespace kmosaic {

absl::Status CheckExport(const v1::ExportRequest& request) {
  if (request.jobs().empty()) {
    return absl::InvalidArgumentError("jobs is empty: name at least one job to export");
  }
  if (request.format() != v1::EXPORT_FORMAT_TRAJECTORY &&
      request.format() != v1::EXPORT_FORMAT_DIRECT) {
    return absl::InvalidArgumentError("format must be TRAJECTORY or DIRECT");
  }
  if (request.include_unverified() && request.format() != v1::EXPORT_FORMAT_TRAJECTORY) {
    return absl::InvalidArgumentError(
        "include_unverified goes with the trajectory format only: a direct row is a verified "
        "solution");
  }
  if (request.has_min_speedup() &&
      !(std::isfinite(request.min_speedup()) && request.min_speedup() >= 0)) {
    return absl::InvalidArgumentError("min_speedup must be a number of at least 0");
  }
  return absl::OkStatus();
}

std::optional<std::string> WhyItemDropped(const v1::Item& item, const v1::ExportRequest& request) {
  switch (item.state()) {
    case v1::ITEM_STATE_DONE:
      break;
    case v1::ITEM_STATE_FAILED:
    case v1::ITEM_STATE_DEAD:
    case v1::ITEM_STATE_CANCELLED:
      return ItemStateName(item.state());
    default:
      return "unfinished";
  }
  if (!item.result().verified() && !request.include_unverified()) return "not_verified";
  return std::nullopt;
}

std::string WhyNoRecord(const absl::Status& status) {
  return absl::IsNotFound(status) ? "no_conversation" : "malformed";
}

std::optional<std::string> WhyRecordDropped(const Record& record,
                                            const v1::ExportRequest& request) {
  if (record.Emulated() && !request.include_emulated()) return "emulated";
  if (!request.has_min_speedup()) return std::nullopt;
  const v1::TurnResult* deciding = record.Deciding();
  if (deciding == nullptr || !deciding->report().benchmark().has_speedup()) {
    return "speedup_unknown";
  }
  // Also for a speedup that is not a number.
  if (!(deciding->report().benchmark().speedup() >= request.min_speedup())) {
    return "below_min_speedup";
  }
  return std::nullopt;
}

}  // namespace kmosaic
