// Text that is cut, cleaned or shown.
#ifndef KMOSAIC_COMMON_BASE_TEXT_H_
#define KMOSAIC_COMMON_BASE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kmosaic {

// Valid UTF-8: each maximal run that is not becomes U+FFFD. Embedded NUL stays.
std::string ToValidUtf8(std::string_view bytes);

// At most `max_bytes`, cut on a character boundary (input need not be valid).
std::string_view TruncateUtf8(std::string_view text, size_t max_bytes);

// Keeps the head and the tail and says between them how many bytes are left out;
// the result is at most `max_bytes` plus the length of that remark.
std::string ElideMiddle(std::string_view text, size_t max_bytes);

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_BASE_TEXT_H_
