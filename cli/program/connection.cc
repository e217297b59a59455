#include "cli/program/connection.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/program/up_record.h"

namespace kmosaic {

absl::StatusOr<Connection> FindCoordinator(const Host& host, const std::string& flag) {
  if (!flag.empty()) return Connection{flag, "--coordinator", MakeChannel(flag)};
  if (std::string target = host.Env("KMOSAIC_COORDINATOR"); !target.empty()) {
    return Connection{target, "KMOSAIC_COORDINATOR", MakeChannel(target)};
  }
  std::string directory = UpRecordDirectory(host);
  std::vector<UpRecord> records = FindUpRecords(directory);
  if (records.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "no coordinator: --coordinator and KMOSAIC_COORDINATOR are not given, and no running "
        "`kmosaic up` of this user is recorded in ",
        directory, "; start one with `kmosaic up`, or give its address"));
  }
  if (records.size() > 1) {
    std::string list;
    for (const UpRecord& record : records) {
      absl::StrAppend(&list, list.empty() ? "" : ", ", record.coordinator, " (process ", record.pid,
                      ", data in ", record.data, ")");
    }
    return absl::InvalidArgumentError(absl::StrCat("several `kmosaic up` of this user run: ", list,
                                                   "; choose one with --coordinator"));
  }
  const UpRecord& record = records.front();
  return Connection{record.coordinator, absl::StrCat("kmosaic up (process ", record.pid, ")"),
                    MakeChannel(record.coordinator)};
}

absl::Status Explain(const Connection& connection, const absl::Status& status) {
  if (status.code() == absl::StatusCode::kUnavailable) {
    return absl::UnavailableError(absl::StrCat(
        "cannot reach the coordinator at ", connection.target, " (named by ", connection.named_by,
        "): ", status.message(), "; check the address and that it runs"));
  }
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat("the coordinator at ", connection.target,
                                                    " did not answer in time: ", status.message()));
  }
  if (status.code() == absl::StatusCode::kUnimplemented) {
    return absl::UnimplementedError(absl::StrCat(
        "the coordinator at ", connection.target,
        " does not offer this; it may be of an older version (`kmosaic health` says which)"));
  }
  return status;
}

}  // namespace kmosaic
