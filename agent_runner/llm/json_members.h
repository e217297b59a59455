// Members of JSON objects that may lack them or hold something else.
#ifndef KMOSAIC_AGENT_RUNNER_LLM_JSON_MEMBERS_H_
#define KMOSAIC_AGENT_RUNNER_LLM_JSON_MEMBERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace kmosaic {

// Null json where there is no such member.
inline const nlohmann::json& Member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

inline std::string TextOf(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

// 0 for what is no whole number from 0.
inline uint64_t CountOf(const nlohmann::json& value) {
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_LLM_JSON_MEMBERS_H_
