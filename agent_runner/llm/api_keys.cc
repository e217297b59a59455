#include "agent_runner/llm/api_keys.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace kmosaic {
namespace {

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
}

std::string FileText(const std::string& folder, const std::string& name) {
  if (folder.empty()) return "";
  std::ifstream file(std::filesystem::path(folder) / name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

absl::StatusOr<std::string> ApiKeys::Get(const std::string& name) const {
  if (!IsName(name)) {
    return absl::InvalidArgumentError("the name of a key may hold letters, digits and '_' only");
  }
  std::string key = FileText(folder_, name);
  if (const char* variable = std::getenv(name.c_str()); key.empty() && variable != nullptr) {
    key = variable;
  }
  absl::StripAsciiWhitespace(&key);
  if (key.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the runner has no key ", name, ": no such environment variable where it is started",
        folder_.empty() ? ", and no --api-key-dir"
                        : absl::StrCat(", and no such file in ", folder_)));
  }
  bool printable =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (!printable) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key ", name, " holds white space or control characters"));
  }
  return key;
}

std::string WithoutKey(std::string text, const std::string& key) {
  if (!key.empty()) absl::StrReplaceAll({{key, "[key]"}}, &text);
  return text;
}

}  // namespace kmosaic
