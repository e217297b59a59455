#include "cli/output/times.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kmosaic {

std::string TimesText(const kernelmosaic::v1::BenchmarkReport& times) {
  std::string text =
      absl::StrFormat("median %.1f us (10%% %.1f, 90%% %.1f, %d samples)", times.median_us(),
                      times.p10_us(), times.p90_us(), times.samples());
  if (times.has_eager_us()) absl::StrAppendFormat(&text, ", eager torch %.1f us", times.eager_us());
  if (times.has_compile_us())
    absl::StrAppendFormat(&text, ", torch.compile %.1f us", times.compile_us());
  if (times.has_floor_us()) {
    absl::StrAppendFormat(&text, ", floor %.1f us", times.floor_us());
    if (!times.floor_bound().empty()) absl::StrAppend(&text, " (", times.floor_bound(), ")");
  }
  if (times.has_speedup()) absl::StrAppendFormat(&text, ", %.2fx of eager torch", times.speedup());
  return text;
}

}  // namespace kmosaic
