#include "gpu_worker/evaluate/fixed_sizes.h"

#include <cctype>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// The line without what follows // or, unless it opens a line of the preprocessor, #.
std::string_view WithoutComment(std::string_view line) {
  line = line.substr(0, line.find("//"));
  size_t first = line.find_first_not_of(" \t");
  size_t hash = line.find('#');
  if (hash == std::string_view::npos) return line;
  if (hash != first) return line.substr(0, hash);
  // "#define N 4" is code, "# 4 rows" is not.
  bool preprocessor = hash + 1 < line.size() && line[hash + 1] >= 'a' && line[hash + 1] <= 'z';
  return preprocessor ? line : std::string_view();
}

// NAME of a line "NAME = 123" without indentation; empty for others.
std::string ModuleConstant(std::string_view line) {
  size_t end = 0;
  while (end < line.size() && IsWordCharacter(line[end]) && line[end] != '.') ++end;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(line[0])) != 0) return "";
  std::string_view rest = line.substr(end);
  bool has_digit = false;
  bool has_sign = false;
  for (char c : rest) {
    if (c == '=') {
      has_sign = true;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      has_digit = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '*') {
      return "";
    }
  }
  return has_digit && has_sign ? std::string(line.substr(0, end)) : "";
}

// Words of a text, as names are.
std::set<std::string> Names(std::string_view text) {
  std::set<std::string> names;
  size_t i = 0;
  auto is_name = [](char c) { return IsWordCharacter(c) && c != '.'; };
  while (i < text.size()) {
    size_t end = i;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end > i) names.insert(std::string(text.substr(i, end - i)));
    i = end + 1;
  }
  return names;
}

// Decimal integers of a text; digits inside names and decimal fractions are none.
std::set<int64_t> Integers(std::string_view text) {
  std::set<int64_t> found;
  size_t i = 0;
  while (i < text.size()) {
    if (!IsWordCharacter(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsWordCharacter(text[end])) ++end;
    std::string word(text.substr(i, end - i));
    while (!word.empty() && std::string_view("uUlL").find(word.back()) != std::string_view::npos) {
      word.pop_back();
    }
    int64_t value = 0;
    if (absl::SimpleAtoi(word, &value)) found.insert(value);
    i = end;
  }
  return found;
}

}  // namespace

std::string CodeThatRuns(std::string_view solution) {
  std::string code;
  std::vector<std::string> constants;
  bool in_block_comment = false;
  bool in_input_function = false;
  while (!solution.empty()) {
    size_t end = solution.find('\n');
    std::string_view line = solution.substr(0, end);
    solution.remove_prefix(end == std::string_view::npos ? solution.size() : end + 1);
    if (in_block_comment) {
      size_t close = line.find("*/");
      if (close == std::string_view::npos) continue;
      line.remove_prefix(close + 2);
      in_block_comment = false;
    }
    if (size_t open = line.find("/*"); open != std::string_view::npos) {
      in_block_comment = line.find("*/", open) == std::string_view::npos;
      line = line.substr(0, open);
    }
    line = WithoutComment(line);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    bool starts_in_column_0 = line[0] != ' ' && line[0] != '\t' && line[0] != ')' && line[0] != ']';
    if (starts_in_column_0) {
      in_input_function = line.substr(0, 14) == "def get_inputs" ||
                          line.substr(0, 19) == "def get_init_inputs";
    }
    if (in_input_function) continue;
    if (!ModuleConstant(line).empty()) {
      constants.push_back(std::string(line));
      continue;
    }
    absl::StrAppend(&code, std::string(line), "\n");
  }
  std::set<std::string> used = Names(code);
  for (const std::string& constant : constants) {
    if (used.count(ModuleConstant(constant)) != 0) absl::StrAppend(&code, constant, "\n");
  }
  return code;
}

std::map<std::string, int64_t> FixedSizes(std::string_view solution,
                                          const std::map<std::string, int64_t>& shapes,
                                          const std::map<std::string, int64_t>& sizes) {
  std::map<std::string, int64_t> fixed;
  std::set<int64_t> literals = Integers(CodeThatRuns(solution));
  for (const auto& [name, reduced] : shapes) {
    auto full = sizes.find(name);
    if (full == sizes.end() || full->second == reduced) continue;
    if (literals.count(full->second) != 0) fixed[name] = full->second;
  }
  return fixed;
}

bool MayComeFromShapes(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_RUNTIME_ERROR:
    case v1::VERDICT_CRASHED:
    case v1::VERDICT_ILLEGAL_LAUNCH:
    case v1::VERDICT_ILLEGAL_ACCESS:
    case v1::VERDICT_OUT_OF_BOUNDS:
    case v1::VERDICT_WRONG_SHAPE:
    case v1::VERDICT_WRONG_OUTPUT:
    case v1::VERDICT_DATA_RACE:
    case v1::VERDICT_NONDETERMINISTIC:
      return true;
    default:
      return false;
  }
}

std::string SizesText(const std::map<std::string, int64_t>& sizes) {
  return absl::StrJoin(sizes, ", ", [](std::string* out, const auto& size) {
    absl::StrAppend(out, size.first, "=", size.second);
  });
}

}  // namespace kmosaic
