// What a series of timed calls says. Pure.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_TIMING_STATISTICS_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_TIMING_STATISTICS_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"

namespace kmosaic {

// Microseconds.
struct TimingSummary {
  size_t samples = 0;
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  // 95 % confidence interval of the median from order statistics, without an assumption
  // about the distribution: the ranks that a binomial(n, 1/2) count stays between (normal
  // approximation; David and Nagaraja, "Order Statistics", 7.1). With fewer than 6 samples
  // it is the whole range, and covers less.
  double ci_low = 0;
  double ci_high = 0;

  // Half the interval's width over the median.
  double relative_error() const { return median > 0 ? (ci_high - ci_low) / 2 / median : 0; }
};

// Of at least one sample.
TimingSummary Summarise(std::vector<double> samples_us);

double Median(std::vector<double> values);

// When enough calls were timed.
struct StopRule {
  size_t min_samples = 30;
  size_t max_samples = 200;
  // Aim: half the confidence interval is at most this share of the median, or this long.
  double relative_error = 0.01;
  double absolute_error_us = 0.25;
  // So many are enough when they took this long in all and agree this well: calls of tens of
  // milliseconds and more, which nothing disturbs.
  size_t steady_samples = 10;
  absl::Duration steady_time = absl::Milliseconds(300);
  double steady_error = 0.003;
  // No further call once this much time was spent on at least `few_samples`; slow
  // programs end here.
  absl::Duration budget = absl::Seconds(5);
  size_t few_samples = 3;

  bool Done(const std::vector<double>& samples_us, absl::Duration spent) const;
};

// When a program is warm. Its calls are not counted.
struct WarmUp {
  size_t min_calls = 3;
  // Either is enough: of calls, or in all. What surrounds short calls warms the GPU too.
  absl::Duration time_of_calls = absl::Milliseconds(50);
  absl::Duration time = absl::Milliseconds(300);
  // After this even a single call is enough.
  absl::Duration budget = absl::Seconds(2);

  // `called` is the sum of the calls' own times, `spent` what passed in all.
  bool Done(size_t calls, absl::Duration called, absl::Duration spent) const;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_TIMING_STATISTICS_H_
