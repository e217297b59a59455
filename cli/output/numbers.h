// Numbers and times as people read them.
#ifndef KMOSAIC_CLI_OUTPUT_NUMBERS_H_
#define KMOSAIC_CLI_OUTPUT_NUMBERS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace kmosaic {

// "950", "12.3k", "4.56M": three digits.
std::string ShortCount(double count);

// "0.4s", "12s", "3m05s", "2h07m", "3d04h"; negative is "0s".
std::string ShortDuration(absl::Duration duration);

// "1.0 KiB", "3.2 GiB".
std::string ShortBytes(uint64_t bytes);

// "just now", "5m ago", "3h ago", "2026-01-02" when longer ago than a week.
std::string Ago(absl::Time then, absl::Time now);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_NUMBERS_H_
