#include "cli/taskfiles/nearest.h"

#include <algorithm>
#include <numeric>

namespace kmosaic {
namespace {

// Levenshtein's distance, one row at a time.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> Nearest(const std::string& word,
                                   const std::vector<std::string>& candidates) {
  size_t best = word.size() <= 4 ? 2 : 3;
  std::optional<std::string> nearest;
  for (const std::string& candidate : candidates) {
    size_t distance = Distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace kmosaic
