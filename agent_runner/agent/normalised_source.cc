#include "agent_runner/agent/normalised_source.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "common/base/digest.h"

namespace kmosaic {
namespace {

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// End of the literal that begins at `at` with `quote`, just behind it; of the line where it
// is not closed.
size_t LiteralEnd(std::string_view text, size_t at, std::string_view quote) {
  size_t i = at + quote.size();
  while (i < text.size()) {
    if (StartsWith(text.substr(i), quote)) return i + quote.size();
    if (quote.size() == 1 && text[i] == '\n') return i;
    i += text[i] == '\\' ? 2 : 1;
  }
  return text.size();
}

size_t LineEnd(std::string_view text, size_t at) {
  return std::min(text.find('\n', at), text.size());
}

// Lines without white space at their ends, and without blank ones. What a backslash at the
// end of a line ties together stays as it is.
std::string Lines(std::string_view text) {
  std::string out;
  bool tied = false;
  while (!text.empty()) {
    size_t end = LineEnd(text, 0);
    std::string_view line = text.substr(0, end);
    size_t last = line.find_last_not_of(" \t\r\f\v");
    bool blank = last == std::string_view::npos;
    bool ties = !blank && line[last] == '\\';
    if (!blank || tied) out.append(ties || blank ? line : line.substr(0, last + 1)) += '\n';
    tied = ties;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Raw string literals R"tag(...)tag" and ordinary ones; 0 where none begins.
size_t CppLiteral(std::string_view text, size_t at) {
  if (text[at] == 'R' && StartsWith(text.substr(at), "R\"")) {
    size_t open = text.find('(', at);
    if (open == std::string_view::npos) return 0;
    std::string closing = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
    size_t end = text.find(closing, open);
    return end == std::string_view::npos ? text.size() : end + closing.size();
  }
  if (text[at] == '"') return LiteralEnd(text, at, "\"");
  // Between digits a quote is a separator.
  bool separator = at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0;
  if (text[at] == '\'' && !separator) return LiteralEnd(text, at, "'");
  return 0;
}

// Line ends stay: preprocessor lines need them.
std::string Cpp(std::string_view text) {
  std::string out;
  // One for any run of white space and comments, none at the beginning of a line.
  auto space = [&out] {
    if (!out.empty() && out.back() != '\n' && out.back() != ' ') out += ' ';
  };
  for (size_t i = 0; i < text.size();) {
    std::string_view rest = text.substr(i);
    if (StartsWith(rest, "//")) {
      // A comment whose line ends in a backslash goes on.
      size_t end = LineEnd(text, i);
      while (end < text.size() && text[end - 1] == '\\') end = LineEnd(text, end + 1);
      i = end;
    } else if (StartsWith(rest, "/*")) {
      size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 2;
      space();
    } else if (size_t end = CppLiteral(text, i); end > i) {
      out.append(text.substr(i, end - i));
      i = end;
    } else if (text[i] == ' ' || text[i] == '\t') {
      ++i;
      space();
    } else {
      out += text[i++];
    }
  }
  return Lines(out);
}

bool HoldsCuda(std::string_view text) {
  return text.find("__global__") != std::string_view::npos ||
         text.find("#include") != std::string_view::npos;
}

std::string Python(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    std::string_view rest = text.substr(i);
    if (text[i] == '#') {
      i = LineEnd(text, i);
      continue;
    }
    bool triple = StartsWith(rest, "\"\"\"") || StartsWith(rest, "'''");
    if (triple || text[i] == '"' || text[i] == '\'') {
      std::string_view quote = rest.substr(0, triple ? 3 : 1);
      size_t end = LiteralEnd(text, i, quote);
      std::string_view literal = text.substr(i, end - i);
      if (triple && HoldsCuda(literal)) {
        out += Cpp(literal);
      } else {
        out.append(literal);
      }
      i = end;
      continue;
    }
    out += text[i++];
  }
  return Lines(out);
}

}  // namespace

std::string NormalisedSource(const v1::Solution& solution) {
  return solution.contract() == v1::CONTRACT_CUDA ? Cpp(solution.source())
                                                  : Python(solution.source());
}

std::string NormalisedDigest(const v1::Solution& solution) {
  return Sha256Hex(NormalisedSource(solution));
}

}  // namespace kmosaic
