// How a daemon tells its starter that it serves: one JSON object on standard output.
#ifndef KMOSAIC_COMMON_LIFECYCLE_READY_LINE_H_
#define KMOSAIC_COMMON_LIFECYCLE_READY_LINE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kmosaic {

struct ReadyLine {
  std::string process;  // "kmosaic-coordinator"
  std::string grpc;     // gRPC target; empty when it serves none
  std::string http;     // HOST:PORT; empty when it serves none
};

// Writes {"ready":true,"process":...,"grpc":...,"http":...} and a newline to stdout.
void PrintReadyLine(const ReadyLine& line);

// INVALID_ARGUMENT when `text` is not such a line.
absl::StatusOr<ReadyLine> ParseReadyLine(std::string_view text);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_LIFECYCLE_READY_LINE_H_
