#include "gpu_worker/emulation/masked_source.h"

#include <algorithm>

namespace kmosaic {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

// Is the quote at `at` a separator inside a number, like 1'000?
bool IsDigitSeparator(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongestNumber = 64;
  std::size_t start = at;
  while (start > 0 && at - start < kLongestNumber &&
         (IsIdentifierCharacter(text[start - 1]) || text[start - 1] == '\'')) {
    --start;
  }
  return start < at && IsDigit(text[start]);
}

// The prefix before a raw string's quote ends in R and is a whole token (R, u8R, uR, UR, LR).
bool IsRawString(std::string_view text, std::size_t quote) {
  std::size_t start = quote;
  while (start > 0 && quote - start < 4 && IsIdentifierCharacter(text[start - 1])) --start;
  const std::string_view prefix = text.substr(start, quote - start);
  return prefix == "R" || prefix == "u8R" || prefix == "uR" || prefix == "UR" || prefix == "LR";
}

}  // namespace

bool IsIdentifierCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

MaskedSource::MaskedSource(std::string_view source)
    : raw_(source), code_(source), directive_(source.size(), false) {
  Mask();
  MarkDirectives();
}

void MaskedSource::Mask() {
  const std::size_t size = raw_.size();
  const auto blank = [&](std::size_t from, std::size_t to, char with) {
    for (std::size_t i = from; i < std::min(to, size); ++i) {
      if (raw_[i] != '\n') code_[i] = with;
    }
  };
  std::size_t i = 0;
  while (i < size) {
    const char c = raw_[i];
    const char next = i + 1 < size ? raw_[i + 1] : '\0';
    if (c == '/' && next == '/') {
      std::size_t end = i;
      // A line comment goes on over a continued line.
      while (end < size && (raw_[end] != '\n' || (end > 0 && raw_[end - 1] == '\\'))) ++end;
      blank(i, end, ' ');
      i = end;
    } else if (c == '/' && next == '*') {
      const std::size_t close = raw_.find("*/", i + 2);
      const std::size_t end = close == kNone ? size : close + 2;
      blank(i, end, ' ');
      i = end;
    } else if (c == '"' && IsRawString(raw_, i)) {
      constexpr std::size_t kLongestDelimiter = 16;
      const std::size_t paren = raw_.find('(', i + 1);
      if (paren == kNone || paren - i - 1 > kLongestDelimiter) {
        ++i;
        continue;
      }
      const std::string closing = ")" + std::string(raw_.substr(i + 1, paren - i - 1)) + "\"";
      const std::size_t close = raw_.find(closing, paren);
      const std::size_t end = close == kNone ? size : close + closing.size();
      blank(i + 1, end - 1, '_');
      i = end;
    } else if (c == '"' || (c == '\'' && !IsDigitSeparator(raw_, i))) {
      std::size_t end = i + 1;
      while (end < size && raw_[end] != c && raw_[end] != '\n') {
        end += raw_[end] == '\\' && end + 1 < size ? 2 : 1;
      }
      blank(i + 1, end, '_');
      i = end < size ? end + 1 : size;
    } else {
      ++i;
    }
  }
}

void MaskedSource::MarkDirectives() {
  std::size_t line = 0;
  const std::size_t size = code_.size();
  while (line < size) {
    std::size_t first = line;
    while (first < size && (code_[first] == ' ' || code_[first] == '\t')) ++first;
    const bool is_directive = first < size && code_[first] == '#';
    // The logical line: a backslash before the newline continues it.
    std::size_t end = line;
    while (end < size && (code_[end] != '\n' ||
                          (is_directive && end > 0 &&
                           (code_[end - 1] == '\\' ||
                            (code_[end - 1] == '\r' && end > 1 && code_[end - 2] == '\\'))))) {
      ++end;
    }
    if (is_directive) {
      for (std::size_t i = line; i < end; ++i) directive_[i] = true;
    }
    line = end + 1;
  }
}

std::size_t MaskedSource::FindIdentifier(std::string_view token, std::size_t from) const {
  for (std::size_t at = code_.find(token, from); at != kNone; at = code_.find(token, at + 1)) {
    const std::size_t end = at + token.size();
    if ((at == 0 || !IsIdentifierCharacter(code_[at - 1])) &&
        (end >= code_.size() || !IsIdentifierCharacter(code_[end]))) {
      return at;
    }
  }
  return kNone;
}

std::size_t MaskedSource::FindClose(std::size_t open) const {
  std::size_t depth = 0;
  for (std::size_t i = open; i < code_.size(); ++i) {
    const char c = code_[i];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth <= 1) return depth == 1 ? i : kNone;
      --depth;
    }
  }
  return kNone;
}

std::size_t MaskedSource::FindOpen(std::size_t close) const {
  std::size_t depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    const char c = code_[i];
    if (c == ')' || c == ']' || c == '}') {
      ++depth;
    } else if (c == '(' || c == '[' || c == '{') {
      if (depth <= 1) return depth == 1 ? i : kNone;
      --depth;
    }
  }
  return kNone;
}

std::size_t MaskedSource::SkipSpace(std::size_t from) const {
  while (from < code_.size() &&
         (IsSpace(code_[from]) || (code_[from] == '\\' && from + 1 < code_.size() &&
                                   (code_[from + 1] == '\n' || code_[from + 1] == '\r')))) {
    ++from;
  }
  return from;
}

}  // namespace kmosaic
