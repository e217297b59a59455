// Wire messages as the JSON that -o json prints.
#ifndef KMOSAIC_CLI_OUTPUT_WIRE_JSON_H_
#define KMOSAIC_CLI_OUTPUT_WIRE_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace kmosaic {

// Every field under its name in the .proto file. null where a message, an optional number
// or an enum is not set (never 0); enums by their short name, verdicts in upper case;
// times as RFC 3339 text, durations in seconds; of a oneof only what is set.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_OUTPUT_WIRE_JSON_H_
