#include "gpu_worker/compile/build_log.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

enum class Importance { kFirstError, kToolError, kError, kOther, kWarning };

struct Diagnostic {
  Importance importance = Importance::kOther;
  std::string text;
};

// Errors beyond these many come after the tools' own.
constexpr int kFirstErrors = 5;

bool Contains(std::string_view line, std::string_view what) {
  return line.find(what) != std::string_view::npos;
}

std::string WithoutEscapes(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == 0x1B && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
    } else if (c == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') continue;
      clean += '\n';
    } else if (c >= 0x20 || c == '\n' || c == '\t') {
      clean += text[i];
    }
  }
  return clean;
}

// "file:12:3: ", "file(12): " or the name of a tool stands before the kind of message.
bool IsError(std::string_view line) {
  return Contains(line, " error:") || Contains(line, " error #") ||
         Contains(line, ": fatal error") || Contains(line, "): error") ||
         line.substr(0, 6) == "error:" || Contains(line, ": internal compiler error");
}

bool IsWarning(std::string_view line) {
  return Contains(line, " warning:") || Contains(line, " warning #") ||
         Contains(line, "): warning") || line.substr(0, 8) == "warning:";
}

bool IsToolError(std::string_view line) {
  static constexpr std::array<std::string_view, 9> kMarks = {
      "ptxas fatal",      "ptxas error",     "nvlink error", "nvlink fatal", "undefined reference",
      "undefined symbol", "collect2: error", "ld returned",  "nvcc fatal"};
  if (std::any_of(kMarks.begin(), kMarks.end(),
                  [&](std::string_view mark) { return Contains(line, mark); })) {
    return true;
  }
  return Contains(line, "ptxas") && Contains(line, "error");
}

// Lines that belong to the message before them.
bool IsContinuation(std::string_view line) {
  if (line.empty() || line[0] == ' ' || line[0] == '\t' || line[0] == '|') return true;
  return Contains(line, ": note:") || Contains(line, " note #") || Contains(line, "): note");
}

// Lines that announce the message after them.
bool IsPreamble(std::string_view line) {
  return line.substr(0, 22) == "In file included from " || Contains(line, ": In function ") ||
         Contains(line, ": In instantiation of ") || Contains(line, ": In member function ") ||
         Contains(line, ": In lambda function") || Contains(line, ": At global scope") ||
         Contains(line, ": In substitution of ") || Contains(line, ":   required ") ||
         (Contains(line, ": In ") && line.back() == ':');
}

std::vector<Diagnostic> Split(std::string_view log) {
  std::vector<Diagnostic> diagnostics;
  std::string preamble;
  int errors = 0;
  while (!log.empty()) {
    size_t end = log.find('\n');
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    bool tool = IsToolError(line);
    bool error = IsError(line);
    bool warning = !error && !tool && IsWarning(line);
    if (!tool && !error && !warning) {
      if (!line.empty() && IsPreamble(line)) {
        absl::StrAppend(&preamble, std::string(line), "\n");
        continue;
      }
      if (preamble.empty() && IsContinuation(line) && !diagnostics.empty()) {
        absl::StrAppend(&diagnostics.back().text, std::string(line), "\n");
        continue;
      }
    }
    Importance importance = Importance::kOther;
    if (tool) {
      importance = Importance::kToolError;
    } else if (error) {
      importance = errors++ < kFirstErrors ? Importance::kFirstError : Importance::kError;
    } else if (warning) {
      importance = Importance::kWarning;
    }
    diagnostics.push_back({importance, absl::StrCat(preamble, std::string(line), "\n")});
    preamble.clear();
  }
  if (!preamble.empty()) diagnostics.push_back({Importance::kOther, preamble});
  return diagnostics;
}

std::string Hide(std::string text, const std::vector<std::string>& prefixes) {
  for (std::string prefix : prefixes) {
    while (!prefix.empty() && prefix.back() == '/') prefix.pop_back();
    if (prefix.empty()) continue;
    text = absl::StrReplaceAll(text, {{absl::StrCat(prefix, "/"), ""}, {prefix, "."}});
  }
  return text;
}

}  // namespace

TrimmedLog TrimLog(std::string_view log, size_t max_bytes,
                   const std::vector<std::string>& hidden_prefixes) {
  std::string clean = Hide(ToValidUtf8(WithoutEscapes(log)), hidden_prefixes);
  TrimmedLog result;
  if (clean.size() <= max_bytes) {
    result.text = std::move(clean);
    return result;
  }
  std::vector<Diagnostic> diagnostics = Split(clean);
  std::vector<size_t> order(diagnostics.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return diagnostics[a].importance < diagnostics[b].importance;
  });
  std::vector<bool> kept(diagnostics.size(), false);
  size_t room = max_bytes;
  for (size_t i : order) {
    std::string& text = diagnostics[i].text;
    // One message must not crowd out the others: half of what is left, at least its head.
    if (text.size() > room / 2 && text.size() > 512) {
      text = ElideMiddle(text, std::max<size_t>(room / 2, 256));
    }
    if (text.size() > room) continue;
    kept[i] = true;
    room -= text.size();
  }
  for (size_t i = 0; i < diagnostics.size(); ++i) {
    if (kept[i]) result.text += diagnostics[i].text;
  }
  result.dropped_bytes = clean.size() - std::min(clean.size(), result.text.size());
  absl::StrAppend(&result.text, "[", result.dropped_bytes, " bytes of compiler output left out]\n");
  return result;
}

}  // namespace kmosaic
