// Results for programs.
#ifndef KMOSAIC_CLI_OUTPUT_PRINT_JSON_H_
#define KMOSAIC_CLI_OUTPUT_PRINT_JSON_H_

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/program/command_line.h"

namespace kmosaic {

// json: one indented value. jsonl: one line for each element of an array, one line for
// anything else. `format` is not table.
void PrintJson(std::ostream& out, OutputFormat format, const nlohmann::ordered_json& value);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_PRINT_JSON_H_
