#include "cli/output/numbers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kmosaic {

std::string ShortCount(double count) {
  if (count < 1000) {
    return count == std::floor(count) ? absl::StrFormat("%.0f", count)
                                      : absl::StrFormat("%.3g", count);
  }
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    // 999.5 would be written with four digits.
    if (count < 999.5) break;
    count /= 1000;
    unit = next;
  }
  int decimals = count < 9.995 ? 2 : count < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f%s", decimals, count, unit);
}

std::string ShortDuration(absl::Duration duration) {
  double seconds = absl::ToDoubleSeconds(duration);
  if (seconds <= 0) return "0s";
  if (seconds < 9.95) return absl::StrFormat("%.1fs", seconds);
  if (duration == absl::InfiniteDuration()) return "forever";
  int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return absl::StrFormat("%ds", whole);
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%dh%02dm", whole / 3600, whole / 60 % 60);
  return absl::StrFormat("%dd%02dh", whole / 86400, whole / 3600 % 24);
}

std::string ShortBytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

std::string Ago(absl::Time then, absl::Time now) {
  absl::Duration age = now - then;
  if (age < absl::Seconds(10)) return "just now";
  if (age < absl::Minutes(1)) return absl::StrFormat("%ds ago", absl::ToInt64Seconds(age));
  if (age < absl::Hours(1)) return absl::StrFormat("%dm ago", absl::ToInt64Minutes(age));
  if (age < absl::Hours(48)) return absl::StrFormat("%dh ago", absl::ToInt64Hours(age));
  if (age < absl::Hours(24 * 7)) return absl::StrFormat("%dd ago", absl::ToInt64Hours(age) / 24);
  return absl::FormatTime("%Y-%m-%d", then, absl::LocalTimeZone());
}

}  // namespace kmosaic
