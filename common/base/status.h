// One mapping between gRPC's and Abseil's statuses, and words for both.
#ifndef KMOSAIC_COMMON_BASE_STATUS_H_
#define KMOSAIC_COMMON_BASE_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kmosaic {

// Codes are the same numbers on both sides; messages are kept.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// The same code with "context: " before the message; OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// Errno of a failed system call: "open /x: No such file or directory".
absl::Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace kmosaic

// Returns from the enclosing function when `expr` is a status that is not OK.
#define KMOSAIC_RETURN_IF_ERROR(expr)                                 \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define KMOSAIC_CONCAT_INNER(a, b) a##b
#define KMOSAIC_CONCAT(a, b) KMOSAIC_CONCAT_INNER(a, b)
#define KMOSAIC_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                  \
  if (!result.ok()) return result.status();              \
  lhs = *std::move(result)
// Declares or assigns `lhs` from a StatusOr, or returns its status.
#define KMOSAIC_ASSIGN_OR_RETURN(lhs, expr) \
  KMOSAIC_ASSIGN_OR_RETURN_IMPL(KMOSAIC_CONCAT(status_or_, __LINE__), lhs, expr)

#endif  // KMOSAIC_COMMON_BASE_STATUS_H_
