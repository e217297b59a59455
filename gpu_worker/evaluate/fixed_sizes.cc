#include "gpu_worker/evaluate/fixed_sizes.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
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

// Names of a line "a = 123" or "a, b = 1, 2" without indentation, which gives nothing but
// numbers; empty for others.
std::vector<std::string> ModuleConstants(std::string_view line) {
  size_t sign = line.find('=');
  if (sign == std::string_view::npos) return {};
  std::string_view numbers = line.substr(sign + 1);
  bool has_digit = false;
  for (char c : numbers) {
    has_digit = has_digit || std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (std::string_view("0123456789,*()[] \t\r").find(c) == std::string_view::npos) return {};
  }
  std::vector<std::string> names;
  for (std::string_view left = line.substr(0, sign); !left.empty();) {
    size_t comma = left.find(',');
    std::string name(
        absl::StripAsciiWhitespace(absl::string_view(left.data(), std::min(comma, left.size()))));
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    if (name.empty() || name.find_first_of(" .[(") != std::string::npos) return {};
    names.push_back(std::move(name));
  }
  return has_digit ? names : std::vector<std::string>();
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
  std::string classes;
  std::string signatures;
  std::vector<std::string> constants;
  bool in_block_comment = false;
  bool in_input_function = false;
  bool in_class = false;
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
    if (std::string_view(" \t)]").find(line[0]) == std::string_view::npos) {
      in_input_function =
          line.starts_with("def get_inputs") || line.starts_with("def get_init_inputs");
      in_class = line.starts_with("class ");
      if (!ModuleConstants(line).empty()) {
        constants.push_back(std::string(line));
        continue;
      }
    }
    if (in_input_function) continue;
    absl::StrAppend(&code, std::string(line), "\n");
    if (!in_class) continue;
    bool is_signature = line.find("def ") != std::string_view::npos;
    absl::StrAppend(is_signature ? &signatures : &classes, std::string(line), "\n");
  }
  // A constant counts when a class reads it, not when a parameter has the same name.
  std::set<std::string> used = Names(classes);
  std::set<std::string> parameters = Names(signatures);
  for (const std::string& constant : constants) {
    for (const std::string& name : ModuleConstants(constant)) {
      if (used.count(name) == 0 || parameters.count(name) != 0) continue;
      absl::StrAppend(&code, constant, "\n");
      break;
    }
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
