// Progress as text: rate, time left, bar. Pure; live_line.h puts it on a terminal.
#ifndef KMOSAIC_CLI_OUTPUT_PROGRESS_H_
#define KMOSAIC_CLI_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace kmosaic {

// Things done per second lately: over the last half minute, or as much longer as it takes
// to see five of them, at most ten minutes. Not thread-safe.
class RateEstimator {
 public:
  // `now` never goes back.
  void Add(absl::Duration now, uint64_t done);

  // Nothing until there are two moments with something done between them.
  std::optional<double> PerSecond() const;

 private:
  struct Sample {
    absl::Duration at;
    uint64_t done;
  };
  // At least a second apart, but for the latest.
  std::deque<Sample> samples_;
};

struct Progress {
  std::string title;
  uint64_t done = 0;
  // 0: not known.
  uint64_t total = 0;
  absl::Duration elapsed;
  std::optional<double> per_second;
  // "verified 10", "failed 2", ...; shown after the rest.
  std::vector<std::string> details;
};

// "3.1/s", "12.0/min", "5.5/h": the unit with which the number is at least 1.
std::string FormatRate(double per_second);

// One line of at most `width` columns, with a bar where there is room:
// "demo  ████████░░░░  12/16  75%  2.4/min  ETA 1m40s  verified 10  failed 2".
std::string FormatProgressBar(const Progress& progress, size_t width);

// The same without a bar, for logs: "demo: 12/16 (75%), 2.4/min, ETA 1m40s, verified 10".
std::string FormatProgressLine(const Progress& progress);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_PROGRESS_H_
