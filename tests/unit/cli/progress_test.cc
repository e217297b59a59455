#include "cli/output/progress.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "cli/output/live_line.h"
#include "cli/output/table.h"

using namespace kmosaic;

namespace {

Progress Sixteen(uint64_t done) {
  Progress progress;
  progress.title = "demo";
  progress.done = done;
  progress.total = 16;
  progress.elapsed = absl::Seconds(75);
  progress.details = {"verified 10", "not 2"};
  return progress;
}

}  // namespace

TEST_CASE("The rate is taken over the last half minute") {
  RateEstimator rate;
  CHECK_FALSE(rate.PerSecond());
  rate.Add(absl::Seconds(0), 0);
  CHECK_FALSE(rate.PerSecond());
  rate.Add(absl::Seconds(10), 100);
  CHECK(rate.PerSecond() == Approx(10));
  for (int t = 11; t <= 100; ++t) rate.Add(absl::Seconds(t), 100 + static_cast<uint64_t>(t - 10));
  CHECK(rate.PerSecond() == Approx(1));
}

TEST_CASE("Where little is done the rate looks further back") {
  RateEstimator rate;
  for (int t = 0; t <= 300; ++t) rate.Add(absl::Seconds(t), static_cast<uint64_t>(t / 60));
  // The fifth last was done right after the 59th second.
  CHECK(rate.PerSecond() == Approx(5.0 / 241));
}

TEST_CASE("Many samples a second do not blur the rate") {
  RateEstimator rate;
  for (int t = 0; t <= 6000; ++t) {
    rate.Add(absl::Milliseconds(t * 10), static_cast<uint64_t>(t / 100));
  }
  CHECK(rate.PerSecond() == Approx(1).epsilon(0.05));
}

TEST_CASE("Where nothing was done there is no rate") {
  RateEstimator rate;
  rate.Add(absl::Seconds(0), 5);
  rate.Add(absl::Seconds(9), 5);
  CHECK_FALSE(rate.PerSecond());
}

TEST_CASE("Rates are written in the unit that suits them") {
  CHECK(FormatRate(250) == "250/s");
  CHECK(FormatRate(3.14) == "3.14/s");
  CHECK(FormatRate(0.2) == "12.0/min");
  CHECK(FormatRate(0.001) == "3.6/h");
}

TEST_CASE("A bar shows share, rate, time left and details") {
  Progress progress = Sixteen(12);
  progress.per_second = 0.04;
  CHECK(FormatProgressBar(progress, 90) ==
        "demo  ██████████████████████░░░░░░░░  12/16  75%  2.4/min  ETA 1m40s  verified 10  not 2");
}

TEST_CASE("A narrow terminal loses the bar first and is never overrun") {
  Progress progress = Sixteen(12);
  progress.per_second = 0.04;
  CHECK(FormatProgressBar(progress, 60) ==
        "demo  12/16  75%  2.4/min  ETA 1m40s  verified 10  not 2");
  for (size_t width = 1; width < 120; ++width) {
    CHECK(DisplayWidth(FormatProgressBar(progress, width)) <= width);
  }
}

TEST_CASE("Without a rate or a total what is known is said") {
  CHECK(FormatProgressLine(Sixteen(0)) == "demo: 0/16 (0%), 1m15s, verified 10, not 2");
  Progress open;
  open.done = 7;
  open.elapsed = absl::Seconds(3);
  CHECK(FormatProgressLine(open) == "7, 3.0s");
  CHECK(FormatProgressBar(open, 80) == "7  3.0s");
}

TEST_CASE("100% is shown only when all is done") {
  Progress progress = Sixteen(999);
  progress.total = 1000;
  CHECK(FormatProgressLine(progress).find("(99%)") != std::string::npos);
}

TEST_CASE("A live line stays silent while things are quick, then redraws in place") {
  FakeClock clock;
  std::ostringstream out;
  LiveLine::Options options;
  options.terminal = true;
  LiveLine line(out, clock, options);
  line.Update(Sixteen(1));
  clock.Advance(absl::Seconds(1));
  line.Update(Sixteen(2));
  CHECK(out.str().empty());
  clock.Advance(absl::Seconds(2));
  line.Update(Sixteen(3));
  CHECK(out.str().rfind("\rdemo", 0) == 0);
  size_t length = out.str().size();
  clock.Advance(absl::Milliseconds(10));
  line.Update(Sixteen(4));
  CHECK(out.str().size() == length);
  line.Clear();
  CHECK(out.str().substr(length) == "\r\x1b[K");
}

TEST_CASE("Elsewhere than on a terminal there is a plain line every five seconds") {
  FakeClock clock;
  std::ostringstream out;
  LiveLine line(out, clock, LiveLine::Options());
  for (int i = 0; i < 120; ++i) {
    line.Update(Sixteen(static_cast<uint64_t>(i) / 10));
    clock.Advance(absl::Milliseconds(100));
  }
  line.Clear();
  std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}
