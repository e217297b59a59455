#include "agent_runner/agent/code_extraction.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"

namespace kmosaic {
namespace {

bool IsIdentifier(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Column of the first character that is neither space nor tab; tabs go to multiples of 4.
size_t Indent(std::string_view line) {
  size_t column = 0;
  for (char c : line) {
    if (c == ' ') {
      ++column;
    } else if (c == '\t') {
      column += 4 - column % 4;
    } else {
      break;
    }
  }
  return column;
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

// Without up to `columns` columns of leading white space.
std::string_view StripIndent(std::string_view line, size_t columns) {
  size_t column = 0;
  while (!line.empty() && column < columns && (line[0] == ' ' || line[0] == '\t')) {
    column += line[0] == '\t' ? 4 - column % 4 : 1;
    line.remove_prefix(1);
  }
  return line;
}

struct Fence {
  char character;
  size_t length;
  size_t indent;
  std::string info;
};

// `line` is relative to its container.
std::optional<Fence> OpeningFence(std::string_view line) {
  size_t indent = Indent(line);
  if (indent > 3) return std::nullopt;
  std::string_view rest = StripIndent(line, indent);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) return std::nullopt;
  char character = rest[0];
  size_t length = std::min(rest.find_first_not_of(character), rest.size());
  if (length < 3) return std::nullopt;
  std::string_view info = rest.substr(length);
  if (character == '`' && info.find('`') != std::string_view::npos) return std::nullopt;
  size_t first = info.find_first_not_of(" \t");
  size_t last = info.find_last_not_of(" \t");
  std::string text;
  if (first != std::string_view::npos) text = std::string(info.substr(first, last - first + 1));
  return Fence{character, length, indent, std::move(text)};
}

bool ClosesFence(std::string_view line, const Fence& fence) {
  size_t indent = Indent(line);
  if (indent > 3) return false;
  std::string_view rest = StripIndent(line, indent);
  size_t length = std::min(rest.find_first_not_of(fence.character), rest.size());
  return length >= fence.length && IsBlank(rest.substr(length));
}

// Column where the content of a list item starts, if `line` starts one.
std::optional<size_t> ListItemContent(std::string_view line) {
  size_t indent = Indent(line);
  std::string_view rest = StripIndent(line, indent);
  size_t marker = 0;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '*' || rest[0] == '+')) {
    marker = 1;
  } else {
    while (marker < rest.size() && absl::ascii_isdigit(static_cast<unsigned char>(rest[marker]))) {
      ++marker;
    }
    if (marker == 0 || marker > 9 || marker >= rest.size()) return std::nullopt;
    if (rest[marker] != '.' && rest[marker] != ')') return std::nullopt;
    ++marker;
  }
  std::string_view after = rest.substr(marker);
  if (IsBlank(after)) return indent + marker + 1;
  size_t spaces = Indent(after);
  if (spaces == 0) return std::nullopt;
  return indent + marker + (spaces <= 4 ? spaces : 1);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find('\n', start);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(start, end - start);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    start = end + 1;
  }
  return lines;
}

// C++ source with comments and the insides of string and character literals blanked;
// `extern_c` is set when an extern "C" stands outside comments.
std::string BlankCommentsAndStrings(std::string_view code, bool* extern_c) {
  std::string out(code);
  *extern_c = false;
  size_t i = 0;
  auto blank_until = [&](size_t end) {
    for (; i < end && i < out.size(); ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
  };
  while (i < code.size()) {
    std::string_view rest = code.substr(i);
    if (rest.substr(0, 2) == "//") {
      blank_until(std::min(code.find('\n', i), code.size()));
    } else if (rest.substr(0, 2) == "/*") {
      size_t end = code.find("*/", i + 2);
      blank_until(end == std::string_view::npos ? code.size() : end + 2);
    } else if (rest.substr(0, 2) == "R\"" && (i == 0 || !IsIdentifier(code[i - 1]))) {
      size_t open = code.find('(', i);
      if (open == std::string_view::npos) return out;
      std::string closing = ")" + std::string(code.substr(i + 2, open - i - 2)) + "\"";
      size_t end = code.find(closing, open);
      blank_until(end == std::string_view::npos ? code.size() : end + closing.size());
    } else if (code[i] == '"' || code[i] == '\'') {
      // A quote between digits is a separator (1'000).
      if (code[i] == '\'' && i > 0 && IsIdentifier(code[i - 1])) {
        ++i;
        continue;
      }
      char quote = code[i];
      if (rest.substr(0, 3) == "\"C\"") {
        size_t before = code.find_last_not_of(" \t\r\n", i == 0 ? 0 : i - 1);
        if (before != std::string_view::npos && before >= 5 &&
            code.substr(before - 5, 6) == "extern") {
          *extern_c = true;
        }
      }
      size_t end = i + 1;
      while (end < code.size() && code[end] != quote && code[end] != '\n') {
        end += code[end] == '\\' ? 2 : 1;
      }
      blank_until(end + 1);
    } else {
      ++i;
    }
  }
  return out;
}

bool DefinesCudaEntry(std::string_view code, const std::string& function) {
  if (function.empty()) return false;
  bool extern_c = false;
  std::string text = BlankCommentsAndStrings(code, &extern_c);
  if (!extern_c) return false;
  for (size_t at = text.find(function); at != std::string::npos; at = text.find(function, at + 1)) {
    size_t after = at + function.size();
    if ((at > 0 && IsIdentifier(text[at - 1])) ||
        (after < text.size() && IsIdentifier(text[after]))) {
      continue;
    }
    size_t open = text.find_first_not_of(" \t\n", after);
    if (open == std::string::npos || text[open] != '(') continue;
    int depth = 0;
    size_t i = open;
    for (; i < text.size(); ++i) {
      if (text[i] == '(') ++depth;
      if (text[i] == ')' && --depth == 0) break;
    }
    if (i >= text.size()) continue;
    size_t body = text.find_first_not_of(" \t\n", i + 1);
    if (body != std::string::npos && text.compare(body, 8, "noexcept") == 0) {
      body = text.find_first_not_of(" \t\n", body + 8);
    }
    if (body != std::string::npos && text[body] == '{') return true;
  }
  return false;
}

bool DefinesModelNew(std::string_view code) {
  constexpr std::string_view kClass = "class";
  constexpr std::string_view kName = "ModelNew";
  for (std::string_view line : Lines(code)) {
    if (line.substr(0, kClass.size()) != kClass) continue;
    size_t at = line.find_first_not_of(" \t", kClass.size());
    if (at == std::string_view::npos || at == kClass.size()) continue;
    if (line.substr(at, kName.size()) != kName) continue;
    size_t next = line.find_first_not_of(" \t", at + kName.size());
    if (next != std::string_view::npos && (line[next] == '(' || line[next] == ':')) return true;
  }
  return false;
}

}  // namespace

EntryPoint EntryPointOf(const v1::TaskSpec& task) {
  EntryPoint entry;
  entry.contract = task.contract();
  const std::string& prototype = task.oracle().entry().prototype();
  size_t end = prototype.find('(');
  if (end == std::string::npos) return entry;
  while (end > 0 && absl::ascii_isspace(static_cast<unsigned char>(prototype[end - 1]))) --end;
  size_t start = end;
  while (start > 0 && IsIdentifier(prototype[start - 1])) --start;
  entry.function = prototype.substr(start, end - start);
  return entry;
}

std::string ExtractionOutcomeName(ExtractionOutcome outcome) {
  switch (outcome) {
    case ExtractionOutcome::kCode:
      return "code";
    case ExtractionOutcome::kTruncated:
      return "truncated";
    case ExtractionOutcome::kNoEntryPoint:
      return "no_entry_point";
    case ExtractionOutcome::kUnfenced:
      return "unfenced";
    case ExtractionOutcome::kNoCode:
      return "no_code";
  }
  return "no_code";
}

std::vector<FencedBlock> FencedBlocks(std::string_view markdown) {
  std::vector<FencedBlock> blocks;
  std::vector<size_t> containers;  // content columns of the list items around
  std::optional<Fence> open;
  for (std::string_view line : Lines(markdown)) {
    size_t container = containers.empty() ? 0 : containers.back();
    if (open) {
      bool left = !IsBlank(line) && Indent(line) < container;
      if (!left) {
        std::string_view inner = StripIndent(line, container);
        if (ClosesFence(inner, *open)) {
          blocks.back().closed = true;
          open.reset();
        } else {
          blocks.back().text.append(StripIndent(inner, open->indent));
          blocks.back().text += '\n';
        }
        continue;
      }
      open.reset();  // the list item ends, and its block with it
    }
    if (IsBlank(line)) continue;
    while (!containers.empty() && Indent(line) < containers.back()) containers.pop_back();
    container = containers.empty() ? 0 : containers.back();
    std::string_view inner = StripIndent(line, container);
    open = OpeningFence(inner);
    if (open) {
      blocks.push_back({open->info, "", false});
      continue;
    }
    if (Indent(inner) > 3) continue;
    std::optional<size_t> content = ListItemContent(inner);
    if (!content) continue;
    containers.push_back(container + *content);
    // The item's first line may itself open a fence.
    open = OpeningFence(StripIndent(inner.substr(std::min(*content, inner.size())), 0));
    if (open) blocks.push_back({open->info, "", false});
  }
  return blocks;
}

bool DefinesEntryPoint(std::string_view code, const EntryPoint& entry) {
  return entry.contract == v1::CONTRACT_CUDA ? DefinesCudaEntry(code, entry.function)
                                             : DefinesModelNew(code);
}

Extraction ExtractCode(std::string_view reply, const EntryPoint& entry) {
  Extraction extraction;
  bool unclosed = false;
  for (FencedBlock& block : FencedBlocks(reply)) {
    if (!block.closed) {
      unclosed = true;
      continue;
    }
    ++extraction.blocks;
    if (DefinesEntryPoint(block.text, entry)) {
      extraction.outcome = ExtractionOutcome::kCode;
      extraction.code = std::move(block.text);
    }
  }
  if (extraction.outcome == ExtractionOutcome::kCode) return extraction;
  if (unclosed) {
    extraction.outcome = ExtractionOutcome::kTruncated;
  } else if (extraction.blocks > 0) {
    extraction.outcome = ExtractionOutcome::kNoEntryPoint;
  } else if (DefinesEntryPoint(reply, entry)) {
    extraction.outcome = ExtractionOutcome::kUnfenced;
  }
  return extraction;
}

}  // namespace kmosaic
