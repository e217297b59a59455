#include "cli/taskfiles/entry_prototype.h"

#include <algorithm>
#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kmosaic {
namespace {

bool IsStream(const EntryParameter& parameter) { return parameter.type == "cudaStream_t"; }

}  // namespace

absl::StatusOr<EntryPrototype> ParseEntryPrototype(const std::string& text) {
  static const std::regex whole(R"(\s*void\s+([A-Za-z_]\w*)\s*\(([^()]*)\)\s*;?\s*)");
  static const std::regex one(R"(\s*([A-Za-z_][\w\s:*]*[\s*])([A-Za-z_]\w*)\s*)");
  std::smatch match;
  if (!std::regex_match(text, match, whole)) {
    return absl::InvalidArgumentError(
        "the prototype must read \"void NAME(TYPE PARAMETER, ...)\" without extern \"C\"");
  }
  EntryPrototype prototype{match[1], {}};
  std::string list = match[2];
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    std::string parameter(part);
    std::smatch piece;
    if (!std::regex_match(parameter, piece, one)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", absl::StripAsciiWhitespace(part),
                       "\" of the prototype must be a type and a name"));
    }
    std::string type = piece[1];
    prototype.parameters.push_back({std::string(absl::StripAsciiWhitespace(type)), piece[2]});
  }
  return prototype;
}

std::vector<std::string> CheckEntry(const kernelmosaic::v1::CudaEntry& entry) {
  auto prototype = ParseEntryPrototype(entry.prototype());
  if (!prototype.ok()) return {std::string(prototype.status().message())};
  static const std::regex binding(
      R"((input|output)\[\d+\](\.shape\[\d+\]|\.numel)?|init\[\d+\]|param\[[^\]]+\])");
  std::vector<std::string> wrong;
  for (const EntryParameter& parameter : prototype->parameters) {
    if (!IsStream(parameter) && entry.bindings().count(parameter.name) == 0) {
      wrong.push_back(absl::StrCat("parameter \"", parameter.name, "\" has no binding; add ",
                                   parameter.name, ": input[0] or the like"));
    }
  }
  for (const auto& [name, target] : entry.bindings()) {
    bool known = std::any_of(prototype->parameters.begin(), prototype->parameters.end(),
                             [&name = name](const EntryParameter& p) { return p.name == name; });
    if (!known) {
      wrong.push_back(absl::StrCat("binding \"", name, "\" names no parameter of the prototype"));
    }
    if (!std::regex_match(target, binding)) {
      wrong.push_back(absl::StrCat("binding \"", name, ": ", target,
                                   "\" must be input[I], output[I], input[I].shape[D], "
                                   "output[I].shape[D], input[I].numel, init[I] or param[NAME]"));
    }
  }
  std::sort(wrong.begin(), wrong.end());
  return wrong;
}

}  // namespace kmosaic
