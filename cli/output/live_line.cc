#include "cli/output/live_line.h"

namespace kmosaic {

LiveLine::LiveLine(std::ostream& stream, const Clock& clock, const Options& options)
    : stream_(stream),
      clock_(clock),
      options_(options),
      started_(clock.Steady()),
      shown_(started_) {}

LiveLine::~LiveLine() { Clear(); }

void LiveLine::Update(Progress progress) {
  absl::Duration now = clock_.Steady();
  rate_.Add(now, progress.done);
  absl::Duration interval = options_.terminal ? options_.redraw : options_.plain_line;
  if (now - started_ < options_.patience) return;
  if (any_shown_ && now - shown_ < interval) return;
  progress.elapsed = now - started_;
  progress.per_second = rate_.PerSecond();
  if (options_.terminal) {
    // Carriage return, text, erase to the end of the line.
    stream_ << '\r' << FormatProgressBar(progress, options_.width - 1) << "\x1b[K" << std::flush;
    on_screen_ = true;
  } else {
    stream_ << FormatProgressLine(progress) << '\n' << std::flush;
  }
  shown_ = now;
  any_shown_ = true;
}

void LiveLine::Clear() {
  if (on_screen_) stream_ << "\r\x1b[K" << std::flush;
  on_screen_ = false;
}

}  // namespace kmosaic
