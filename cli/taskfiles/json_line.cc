#include "cli/taskfiles/json_line.h"

#include "absl/strings/str_cat.h"

namespace kmosaic {

std::optional<nlohmann::json> ParseJsonLine(const std::string& line, const Location& where,
                                            Problems& problems) {
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    problems.Add({where.file, where.line, static_cast<int>(error.byte)}, "this is not JSON");
    return std::nullopt;
  }
  if (!value.is_object()) {
    problems.Add(where,
                 absl::StrCat("expected a JSON object, found ", std::string(value.type_name())));
    return std::nullopt;
  }
  return value;
}

}  // namespace kmosaic
