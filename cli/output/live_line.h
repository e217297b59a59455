// One line that changes in place on a terminal; a plain line now and then elsewhere.
#ifndef KMOSAIC_CLI_OUTPUT_LIVE_LINE_H_
#define KMOSAIC_CLI_OUTPUT_LIVE_LINE_H_

#include <ostream>

#include "absl/time/time.h"
#include "cli/output/progress.h"
#include "common/base/clock.h"

namespace kmosaic {

// Not thread-safe. The destructor clears the line.
class LiveLine {
 public:
  struct Options {
    bool terminal = false;
    size_t width = 80;
    // Least time between two drawings.
    absl::Duration redraw = absl::Milliseconds(100);
    absl::Duration plain_line = absl::Seconds(5);
    // Nothing is shown for what takes less.
    absl::Duration patience = absl::Seconds(2);
  };

  // `stream` and `clock` must outlive it.
  LiveLine(std::ostream& stream, const Clock& clock, const Options& options);
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Shows the progress if it is time to; fills in elapsed time and rate itself.
  void Update(Progress progress);

  // Takes the line off a terminal, before other text is written.
  void Clear();

 private:
  std::ostream& stream_;
  const Clock& clock_;
  const Options options_;
  const absl::Duration started_;
  absl::Duration shown_;
  RateEstimator rate_;
  bool on_screen_ = false;
  bool any_shown_ = false;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_LIVE_LINE_H_
