#include "agent_runner/agent/degenerate.h"

#include <algorithm>
#include <cstddef>

namespace kmosaic {
namespace {

constexpr size_t kLeastBytes = 400;
constexpr size_t kLeastPieces = 8;
constexpr size_t kEnoughBytes = 1500;
constexpr size_t kLongestPeriod = 200;
constexpr size_t kPercentEqual = 97;

}  // namespace

bool EndsInRepetition(std::string_view text) {
  for (size_t period = 1; period <= kLongestPeriod; ++period) {
    size_t bytes = std::clamp(kLeastPieces * period, kLeastBytes, kEnoughBytes);
    if (text.size() < bytes) return false;  // longer periods want as much at least
    std::string_view tail = text.substr(text.size() - bytes);
    size_t equal = 0;
    for (size_t i = period; i < tail.size(); ++i) {
      if (tail[i] == tail[i - period]) ++equal;
    }
    if (equal * 100 >= (tail.size() - period) * kPercentEqual) return true;
  }
  return false;
}

}  // namespace kmosaic
