// Values of a row: null where there is nothing to say, never a value that stands for it.
#ifndef KMOSAIC_COORDINATOR_DATASET_COLUMNS_H_
#define KMOSAIC_COORDINATOR_DATASET_COLUMNS_H_

#include <nlohmann/json.hpp>
#include <string>

#include "common/base/text.h"

namespace kmosaic {

// Valid UTF-8; null for an empty text.
nlohmann::ordered_json TextColumn(const std::string& text);

// Null for an infinity and for what is not a number.
nlohmann::ordered_json NumberColumn(double value);

// `value` where it was measured, otherwise null.
template <typename T>
nlohmann::ordered_json If(bool known, T value) {
  return known ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json If(bool known, double value) {
  return known ? NumberColumn(value) : nlohmann::ordered_json(nullptr);
}

template <typename Strings>
nlohmann::ordered_json ListColumn(const Strings& strings) {
  auto list = nlohmann::ordered_json::array();
  for (const std::string& text : strings) list.push_back(ToValidUtf8(text));
  return list;
}

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_DATASET_COLUMNS_H_
