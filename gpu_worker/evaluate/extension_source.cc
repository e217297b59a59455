#include "gpu_worker/evaluate/extension_source.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

using nlohmann::json;

constexpr size_t kMaxExtensions = 64;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("recorded extension: ", what));
}

absl::StatusOr<std::string> Text(const json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return Malformed(absl::StrCat("no ", key));
  return found->get<std::string>();
}

absl::StatusOr<std::vector<std::string>> Texts(const json& object, const char* key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return Malformed(absl::StrCat("no ", key));
  std::vector<std::string> texts;
  for (const json& text : *found) {
    if (!text.is_string()) return Malformed(absl::StrCat(key, " holds something else than text"));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace

absl::StatusOr<std::vector<ExtensionSource>> ParseExtensions(const json& list) {
  if (!list.is_array()) return Malformed("not a list");
  if (list.size() > kMaxExtensions) return Malformed("more than 64 in one file");
  std::vector<ExtensionSource> extensions;
  for (const json& object : list) {
    if (!object.is_object()) return Malformed("not an object");
    ExtensionSource source;
    KMOSAIC_ASSIGN_OR_RETURN(source.key, Text(object, "key"));
    if (source.key.size() != 64 ||
        !std::all_of(source.key.begin(), source.key.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      return Malformed("its key is not a digest");
    }
    KMOSAIC_ASSIGN_OR_RETURN(source.name, Text(object, "name"));
    KMOSAIC_ASSIGN_OR_RETURN(source.cpp_sources, Texts(object, "cpp_sources"));
    KMOSAIC_ASSIGN_OR_RETURN(source.cuda_sources, Texts(object, "cuda_sources"));
    KMOSAIC_ASSIGN_OR_RETURN(source.functions, Texts(object, "functions"));
    KMOSAIC_ASSIGN_OR_RETURN(source.cflags, Texts(object, "cflags"));
    KMOSAIC_ASSIGN_OR_RETURN(source.cuda_cflags, Texts(object, "cuda_cflags"));
    KMOSAIC_ASSIGN_OR_RETURN(source.ldflags, Texts(object, "ldflags"));
    extensions.push_back(std::move(source));
  }
  return extensions;
}

size_t CountBuildCalls(const std::string& python) {
  size_t count = 0;
  auto is_word = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::string_view name : {"load_inline", "load"}) {
    for (size_t at = python.find(name); at != python.npos; at = python.find(name, at + 1)) {
      size_t end = at + name.size();
      if (at > 0 && is_word(python[at - 1])) continue;
      // torch.load, json.load and the like are none.
      if (name == "load" && at > 0 && python[at - 1] == '.' &&
          !absl::EndsWith(absl::string_view(python.data(), at - 1), "cpp_extension")) {
        continue;
      }
      while (end < python.size() && python[end] == ' ') ++end;
      if (end < python.size() && python[end] == '(') ++count;
    }
  }
  return count;
}

}  // namespace kmosaic
