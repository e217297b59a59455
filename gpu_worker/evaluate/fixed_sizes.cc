#include "gpu_worker/evaluate/fixed_sizes.h"

#include <cctype>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
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

std::map<std::string, int64_t> FixedSizes(std::string_view solution,
                                          const std::map<std::string, int64_t>& shapes,
                                          const std::map<std::string, int64_t>& sizes) {
  std::map<std::string, int64_t> fixed;
  std::set<int64_t> literals = Integers(solution);
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
