#include "coordinator/dataset/columns.h"

#include <cmath>

namespace kmosaic {

nlohmann::ordered_json TextColumn(const std::string& text) {
  if (text.empty()) return nullptr;
  return ToValidUtf8(text);
}

nlohmann::ordered_json NumberColumn(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

}  // namespace kmosaic
