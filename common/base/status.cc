#include "common/base/status.h"

#include <system_error>

#include "absl/strings/str_cat.h"

namespace kmosaic {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat(std::string(context), ": ", status.message())};
}

absl::Status ErrnoStatus(int error_number, std::string_view what) {
  return absl::ErrnoToStatus(error_number, std::string(what));
}

}  // namespace kmosaic
