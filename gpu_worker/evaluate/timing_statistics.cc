#include "gpu_worker/evaluate/timing_statistics.h"

#include <algorithm>
#include <cmath>

namespace kmosaic {
namespace {

// Of sorted values, between two of them by weight.
double Quantile(const std::vector<double>& sorted, double share) {
  double place = share * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

TimingSummary Summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  TimingSummary summary;
  summary.samples = samples.size();
  summary.median = Quantile(samples, 0.5);
  summary.p10 = Quantile(samples, 0.1);
  summary.p90 = Quantile(samples, 0.9);
  double n = static_cast<double>(samples.size());
  double reach = 1.959964 * std::sqrt(n) / 2;
  // Ranks from 1, rounded outwards.
  auto low = static_cast<int64_t>(std::floor(n / 2 - reach));
  auto high = static_cast<int64_t>(std::ceil(n / 2 + 1 + reach));
  auto count = static_cast<int64_t>(samples.size());
  summary.ci_low = samples[static_cast<size_t>(std::clamp<int64_t>(low, 1, count) - 1)];
  summary.ci_high = samples[static_cast<size_t>(std::clamp<int64_t>(high, 1, count) - 1)];
  return summary;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

bool StopRule::Done(const std::vector<double>& samples, absl::Duration spent) const {
  if (samples.size() >= max_samples) return true;
  if (samples.size() >= few_samples && spent >= budget) return true;
  bool is_long = samples.size() >= steady_samples && spent >= steady_time;
  if (samples.size() < min_samples && !is_long) return false;
  TimingSummary summary = Summarise(samples);
  double half = (summary.ci_high - summary.ci_low) / 2;
  if (samples.size() < min_samples) return half <= steady_error * summary.median;
  return half <= std::max(relative_error * summary.median, absolute_error_us);
}

bool WarmUp::Done(size_t calls, absl::Duration called, absl::Duration spent) const {
  if (calls == 0) return false;
  if (spent >= budget) return true;
  return calls >= min_calls && (called >= time_of_calls || spent >= time);
}

}  // namespace kmosaic
