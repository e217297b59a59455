#include "common/lifecycle/ready_line.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace kmosaic {

void PrintReadyLine(const ReadyLine& line) {
  nlohmann::ordered_json json = {
      {"ready", true}, {"process", line.process}, {"grpc", line.grpc}, {"http", line.http}};
  std::fprintf(stdout, "%s\n", json.dump().c_str());
  std::fflush(stdout);
}

absl::StatusOr<ReadyLine> ParseReadyLine(std::string_view text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("ready", false) != true) {
    return absl::InvalidArgumentError(absl::StrCat("not a ready line: ", std::string(text)));
  }
  return ReadyLine{json.value("process", ""), json.value("grpc", ""), json.value("http", "")};
}

}  // namespace kmosaic
