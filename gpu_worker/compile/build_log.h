// What of a compiler's output is worth showing.
#ifndef KMOSAIC_GPU_WORKER_COMPILE_BUILD_LOG_H_
#define KMOSAIC_GPU_WORKER_COMPILE_BUILD_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kmosaic {

struct TrimmedLog {
  std::string text;
  // Bytes of the cleaned log that `text` leaves out.
  uint64_t dropped_bytes = 0;
};

// Valid UTF-8 of at most `max_bytes` (and a last line that says how much was left out).
// The log is cut into diagnostics (a message with its source lines, notes and carets).
// Kept, in this order until the room is used: the first errors, errors of ptxas,
// nvlink, cicc and the linker, further errors, everything else, warnings. What is kept stays in the
// order of the log. Colour codes are removed, and each of `hidden_prefixes` (directories of the
// build) from every path.
TrimmedLog TrimLog(std::string_view log, size_t max_bytes,
                   const std::vector<std::string>& hidden_prefixes);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_COMPILE_BUILD_LOG_H_
