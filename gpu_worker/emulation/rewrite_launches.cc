#include "gpu_worker/emulation/rewrite_launches.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace kmosaic {

namespace {

constexpr std::size_t kNone = MaskedSource::kNone;

bool IsSpaceOrContinuation(char c) { return absl::ascii_isspace(c) || c == '\\'; }

std::size_t LineOf(std::string_view text, std::size_t position) {
  return 1 + static_cast<std::size_t>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

// The position of the < that opens the template arguments closed by the > at `close`, or kNone.
std::size_t FindAngleOpen(const MaskedSource& source, std::size_t close) {
  constexpr std::size_t kLongestArguments = 4096;
  const std::string_view code = source.code();
  std::size_t depth = 0;
  for (std::size_t i = close + 1; i-- > 0 && close - i < kLongestArguments;) {
    switch (code[i]) {
      case '>':
        if (i > 0 && code[i - 1] == '-') break;  // ->
        ++depth;
        break;
      case '<':
        if (--depth == 0) return i;
        break;
      case ')':
      case ']':
      case '}': {
        const std::size_t open = source.FindOpen(i);
        if (open == kNone) return kNone;
        i = open;
        break;
      }
      case '(':
      case '[':
      case '{':
      case ';':
        return kNone;
      default:
        break;
    }
  }
  return kNone;
}

// Start of the expression that names the kernel and ends before `end`; `end` itself when there
// is none: name, a::b::name, name<arguments>, A<b>::name<c>, (expression).
std::size_t FindCallee(const MaskedSource& source, std::size_t end) {
  const std::string_view code = source.code();
  const auto skip_back = [&](std::size_t at) {
    while (at > 0 && IsSpaceOrContinuation(code[at - 1])) --at;
    return at;
  };
  std::size_t at = skip_back(end);
  if (at > 0 && code[at - 1] == ')') {
    const std::size_t open = source.FindOpen(at - 1);
    return open == kNone ? end : open;
  }
  std::size_t start = end;
  for (;;) {
    if (at > 0 && code[at - 1] == '>') {
      const std::size_t open = FindAngleOpen(source, at - 1);
      if (open == kNone) return start;
      at = skip_back(open);
    }
    const std::size_t name_end = at;
    while (at > 0 && IsIdentifierCharacter(code[at - 1])) --at;
    if (at == name_end) return start;
    start = at;
    std::size_t before = skip_back(at);
    if (before < 2 || code[before - 1] != ':' || code[before - 2] != ':') return start;
    start = before - 2;  // a leading :: is part of the name too
    at = skip_back(before - 2);
    if (at == 0 || (code[at - 1] != '>' && !IsIdentifierCharacter(code[at - 1]))) return start;
  }
}

// The callee's text as one line without anything that a string literal could not hold.
std::string ReadableName(std::string_view callee) {
  std::string name;
  for (const char c : callee) {
    if (IsSpaceOrContinuation(c)) {
      if (!name.empty() && name.back() != ' ') name += ' ';
    } else if (c != '"' && static_cast<unsigned char>(c) >= 0x20 &&
               static_cast<unsigned char>(c) < 0x7f) {
      name += c;
    }
  }
  absl::StripTrailingAsciiWhitespace(&name);
  return name;
}

// A literal null among the arguments is given a type that converts to whatever the parameter is.
void RewriteArguments(const MaskedSource& source, std::size_t begin, std::size_t end,
                      TextEdits* edits) {
  const std::string_view code = source.code();
  std::size_t start = begin;
  std::size_t depth = 0;
  for (std::size_t i = begin; i <= end; ++i) {
    const char c = i == end ? ',' : code[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
    if (c != ',' || depth != 0) continue;
    std::size_t first = start, last = i;
    while (first < last && IsSpaceOrContinuation(code[first])) ++first;
    while (last > first && IsSpaceOrContinuation(code[last - 1])) --last;
    const std::string_view argument = code.substr(first, last - first);
    if (argument == "0") edits->Replace(first, last, "::kmosaic_emulation::Zero{}");
    if (argument == "NULL") edits->Replace(first, last, "nullptr");
    start = i + 1;
  }
}

}  // namespace

absl::Status RewriteLaunches(const MaskedSource& source, TextEdits* edits) {
  const std::string_view code = source.code();
  for (std::size_t open = code.find("<<<"); open != kNone; open = code.find("<<<", open + 3)) {
    const auto fault = [&](std::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", LineOf(code, open), ": kernel launch: ", std::string(what)));
    };
    std::size_t close = kNone;
    std::size_t depth = 0;
    for (std::size_t i = open + 3; i < code.size(); ++i) {
      const char c = code[i];
      if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if (c == ')' || c == ']' || c == '}') {
        if (depth == 0) break;
        --depth;
      } else if (depth == 0 && (c == ';' || code.substr(i, 3) == ">>>")) {
        if (c == '>') close = i;
        break;
      }
    }
    if (close == kNone) return fault("<<< without >>>");
    const std::size_t paren = source.SkipSpace(close + 3);
    if (paren >= code.size() || code[paren] != '(') {
      return fault("no argument list after >>>");
    }
    const std::size_t end = source.FindClose(paren);
    if (end == kNone) return fault("the argument list is not closed");
    const std::size_t callee = FindCallee(source, open);
    if (callee == open) return fault("no kernel name before <<<");

    const std::string_view callee_text = source.raw().substr(callee, open - callee);
    bool has_arguments = false;
    for (std::size_t i = paren + 1; i < end && !has_arguments; ++i) {
      has_arguments = !IsSpaceOrContinuation(code[i]);
    }
    edits->Replace(callee, open + 3,
                   "::kmosaic_emulation::Launch(::kmosaic_emulation::LaunchShape(");
    edits->Replace(close, paren + 1,
                   absl::StrCat("), \"", ReadableName(code.substr(callee, open - callee)),
                                "\", [&](auto... kmosaic_arguments) { ", std::string(callee_text),
                                "(kmosaic_arguments...); }",
                                std::string(source.raw().substr(close + 3, paren - close - 3)),
                                has_arguments ? ", " : ""));
    RewriteArguments(source, paren + 1, end, edits);
  }
  return absl::OkStatus();
}

}  // namespace kmosaic
