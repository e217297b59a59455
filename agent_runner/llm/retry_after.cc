#include "agent_runner/llm/retry_after.h"

#include <curl/curl.h>

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace kmosaic {

std::optional<absl::Duration> ParseRetryAfter(std::string_view value, absl::Time now) {
  std::string text(value);
  absl::StripAsciiWhitespace(&text);
  if (text.empty()) return std::nullopt;
  bool number = text.find_first_not_of("0123456789.+-") == std::string::npos;
  if (number) {
    double seconds = 0;
    if (!absl::SimpleAtod(text, &seconds) || seconds < 0) return std::nullopt;
    return absl::Seconds(seconds);
  }
  // A date has a day's or month's name and digits.
  if (text.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  time_t date = curl_getdate(text.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(absl::FromTimeT(date) - now, absl::ZeroDuration());
}

}  // namespace kmosaic
