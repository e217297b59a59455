#include "agent_runner/llm/lone_surrogates.h"

#include <cstdint>
#include <optional>

namespace kmosaic {
namespace {

// UTF-8 of U+10F000..U+10F7FF: F4 8F 80..9F 80..BF.
constexpr std::string_view kHiddenPrefix = "\xF4\x8F";
constexpr size_t kHiddenBytes = 4;
constexpr uint32_t kLowHalf = 0x400;  // within the eleven bits

// Value of a \uXXXX at `at`.
std::optional<uint32_t> Escape(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  uint32_t value = 0;
  for (size_t i = at + 2; i < at + 6; ++i) {
    char c = text[i];
    uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint32_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<uint32_t>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

bool IsHigh(uint32_t value) { return value >= 0xD800 && value < 0xDC00; }
bool IsLow(uint32_t value) { return value >= 0xDC00 && value < 0xE000; }

std::string Utf8(uint32_t code) {
  return {static_cast<char>(0xF0 | (code >> 18)), static_cast<char>(0x80 | ((code >> 12) & 0x3F)),
          static_cast<char>(0x80 | ((code >> 6) & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
}

// The eleven bits of a hidden half at `at`.
std::optional<uint32_t> Hidden(std::string_view text, size_t at) {
  if (at + kHiddenBytes > text.size() || text.substr(at, 2) != kHiddenPrefix) return std::nullopt;
  uint32_t third = static_cast<unsigned char>(text[at + 2]);
  uint32_t fourth = static_cast<unsigned char>(text[at + 3]);
  if (third < 0x80 || third > 0x9F) return std::nullopt;
  return ((third & 0x1F) << 6) | (fourth & 0x3F);
}

}  // namespace

std::string HideLoneSurrogates(std::string_view json, bool* found) {
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size();) {
    if (json[i] != '\\') {
      out += json[i++];
      continue;
    }
    std::optional<uint32_t> value = Escape(json, i);
    if (!value) {  // another escape: two characters
      out.append(json.substr(i, 2));
      i += 2;
      continue;
    }
    std::optional<uint32_t> next = IsHigh(*value) ? Escape(json, i + 6) : std::nullopt;
    if (next && IsLow(*next)) {
      out.append(json.substr(i, 12));
      i += 12;
    } else if (IsHigh(*value) || IsLow(*value)) {
      out += Utf8(0x10F000 + (*value - 0xD800));
      *found = true;
      i += 6;
    } else {
      out.append(json.substr(i, 6));
      i += 6;
    }
  }
  return out;
}

std::string JoinHiddenSurrogates(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    std::optional<uint32_t> half = Hidden(text, i);
    if (!half) {
      out += text[i++];
      continue;
    }
    std::optional<uint32_t> next = Hidden(text, i + kHiddenBytes);
    if (*half < kLowHalf && next && *next >= kLowHalf) {
      out += Utf8(0x10000 + (*half << 10) + (*next - kLowHalf));
      i += 2 * kHiddenBytes;
    } else {
      out += "\xEF\xBF\xBD";
      i += kHiddenBytes;
    }
  }
  return out;
}

}  // namespace kmosaic
