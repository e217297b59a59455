// One line of a JSON Lines file.
#ifndef KMOSAIC_CLI_TASKFILES_JSON_LINE_H_
#define KMOSAIC_CLI_TASKFILES_JSON_LINE_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/taskfiles/problems.h"

namespace kmosaic {

// Nothing, and a problem with the column, unless the line is one JSON object.
std::optional<nlohmann::json> ParseJsonLine(const std::string& line, const Location& where,
                                            Problems& problems);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_JSON_LINE_H_
