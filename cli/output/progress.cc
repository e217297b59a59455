#include "cli/output/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/numbers.h"
#include "cli/output/table.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kShortWindow = absl::Seconds(30);
constexpr absl::Duration kLongWindow = absl::Minutes(10);
constexpr uint64_t kEnoughDone = 5;
constexpr size_t kWidestBar = 30;
constexpr size_t kNarrowestBar = 8;

std::string Counter(const Progress& progress) {
  if (progress.total == 0) return absl::StrCat(progress.done);
  return absl::StrCat(progress.done, "/", progress.total);
}

std::string Percent(const Progress& progress) {
  // Rounded down: 100% only when all is done.
  return absl::StrCat(progress.done * 100 / progress.total, "%");
}

// Rate and time left, where they can be said.
std::vector<std::string> Speed(const Progress& progress) {
  std::vector<std::string> parts;
  bool finished = progress.total > 0 && progress.done >= progress.total;
  if (progress.per_second && *progress.per_second > 0) {
    parts.push_back(FormatRate(*progress.per_second));
    if (progress.total > progress.done) {
      double left = static_cast<double>(progress.total - progress.done) / *progress.per_second;
      parts.push_back(absl::StrCat("ETA ", ShortDuration(absl::Seconds(left))));
    }
  }
  if (finished || parts.empty()) parts.push_back(ShortDuration(progress.elapsed));
  return parts;
}

std::string Bar(const Progress& progress, size_t width) {
  size_t full =
      progress.total == 0 ? 0 : std::min<uint64_t>(width, progress.done * width / progress.total);
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < full ? "█" : "░";
  return bar;
}

}  // namespace

void RateEstimator::Add(absl::Duration now, uint64_t done) {
  size_t count = samples_.size();
  bool replaces = count > 0 && samples_[count - 1].at == now;
  replaces = replaces || (count > 1 && now - samples_[count - 2].at < absl::Seconds(1));
  if (replaces) {
    samples_.back() = {now, done};
  } else {
    samples_.push_back({now, done});
  }
  // The sample just outside the window stays: the rate is over at least the window.
  while (samples_.size() > 2 && samples_[1].at <= now - kLongWindow) samples_.pop_front();
}

std::optional<double> RateEstimator::PerSecond() const {
  if (samples_.size() < 2) return std::nullopt;
  const Sample& last = samples_.back();
  auto first = samples_.rbegin();
  while (first + 1 != samples_.rend()) {
    ++first;
    if (last.at - first->at >= kShortWindow && last.done - first->done >= kEnoughDone) break;
  }
  if (last.done <= first->done) return std::nullopt;
  return static_cast<double>(last.done - first->done) / absl::ToDoubleSeconds(last.at - first->at);
}

std::string FormatRate(double per_second) {
  if (per_second >= 1)
    return absl::StrCat(ShortCount(per_second < 100 ? std::min(99.9, per_second) : per_second),
                        "/s");
  if (per_second * 60 >= 1) return absl::StrFormat("%.1f/min", per_second * 60);
  return absl::StrFormat("%.1f/h", per_second * 3600);
}

std::string FormatProgressBar(const Progress& progress, size_t width) {
  std::vector<std::string> tail = {Counter(progress)};
  if (progress.total > 0) tail.push_back(Percent(progress));
  for (const std::string& part : Speed(progress)) tail.push_back(part);
  for (const std::string& part : progress.details) tail.push_back(part);
  std::string text = absl::StrJoin(tail, "  ");
  std::string head = progress.title.empty() ? "" : progress.title + "  ";
  size_t used = DisplayWidth(head) + DisplayWidth(text) + 2;
  if (progress.total > 0 && width >= used + kNarrowestBar) {
    head += Bar(progress, std::min(kWidestBar, width - used)) + "  ";
  }
  return Shorten(head + text, width);
}

std::string FormatProgressLine(const Progress& progress) {
  std::string counter = Counter(progress);
  if (progress.total > 0) absl::StrAppend(&counter, " (", Percent(progress), ")");
  std::vector<std::string> parts = {counter};
  for (const std::string& part : Speed(progress)) parts.push_back(part);
  for (const std::string& part : progress.details) parts.push_back(part);
  return absl::StrCat(progress.title.empty() ? "" : progress.title + ": ",
                      absl::StrJoin(parts, ", "));
}

}  // namespace kmosaic
