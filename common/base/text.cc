#include "common/base/text.h"

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

// Length of the well-formed UTF-8 character at the start of `text` (Unicode 15,
// table 3-7), or 0.
size_t CharacterLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continues = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string ToValidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  bool in_bad_run = false;
  while (!bytes.empty()) {
    if (size_t length = CharacterLength(bytes); length > 0) {
      text.append(bytes.substr(0, length));
      bytes.remove_prefix(length);
      in_bad_run = false;
    } else {
      if (!in_bad_run) text += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
      in_bad_run = true;
    }
  }
  return text;
}

std::string_view TruncateUtf8(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  // A character has at most three continuation bytes; more is not UTF-8 anyway.
  for (int i = 0; i < 3 && end > 0 && IsContinuation(text[end]); ++i) --end;
  return text.substr(0, end);
}

std::string ElideMiddle(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::string_view head = TruncateUtf8(text, max_bytes / 2);
  size_t tail_start = text.size() - (max_bytes - max_bytes / 2);
  while (tail_start < text.size() && IsContinuation(text[tail_start])) ++tail_start;
  return absl::StrCat(std::string(head), "\n[... ", tail_start - head.size(),
                      " bytes left out ...]\n", std::string(text.substr(tail_start)));
}

}  // namespace kmosaic
