#include "cli/taskfiles/yaml_document.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace kmosaic {

std::optional<YamlDocument> YamlDocument::Parse(const std::string& file, const std::string& text,
                                                const std::vector<std::string>& overrides,
                                                Problems& problems) {
  YamlDocument document;
  document.file_ = file;
  std::vector<YAML::Node> parsed;
  try {
    parsed = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    problems.Add({file, error.mark.line + 1, error.mark.column + 1},
                 absl::StrCat("this is not YAML: ", error.msg));
    return std::nullopt;
  }
  if (parsed.empty() || parsed[0].IsNull()) {
    problems.Add({file}, "the file is empty; it must hold a mapping of keys to values");
    return std::nullopt;
  }
  if (parsed.size() > 1) {
    YAML::Mark mark = parsed[1].Mark();
    problems.Add({file, mark.line + 1}, "a second YAML document starts here; use one file each");
    return std::nullopt;
  }
  document.root_ = parsed[0];
  if (!document.root_.IsMap()) {
    YAML::Mark mark = document.root_.Mark();
    problems.Add({file, mark.line + 1, mark.column + 1},
                 "expected a mapping of keys to values at the top level");
    return std::nullopt;
  }
  bool good = true;
  for (const std::string& override_text : overrides) {
    good = document.Override(override_text, problems) && good;
  }
  if (!good) return std::nullopt;
  return document;
}

bool YamlDocument::Override(const std::string& text, Problems& problems) {
  size_t equals = text.find('=');
  // Without the value, which may be something that must not be shown.
  std::string flag = absl::StrCat("--set ", text.substr(0, equals));
  if (equals == 0 || equals == std::string::npos) {
    problems.Add({flag}, "expected KEY=VALUE, say samples=4 or endpoint.model=NAME");
    return false;
  }
  std::string path = text.substr(0, equals);
  YAML::Node value;
  try {
    value = YAML::Load(text.substr(equals + 1));
  } catch (const YAML::Exception& error) {
    problems.Add({flag}, absl::StrCat("the value is not YAML: ", error.msg,
                                      "; put it in double quotes inside the argument"));
    return false;
  }
  std::vector<std::string> keys = absl::StrSplit(path, '.');
  YAML::Node at = root_;
  for (size_t i = 0; i + 1 < keys.size(); ++i) {
    YAML::Node next = at[keys[i]];
    if (next.IsDefined() && !next.IsMap() && !next.IsNull()) {
      std::string above = absl::StrJoin(keys.begin(), keys.begin() + static_cast<long>(i) + 1, ".");
      problems.Add({flag}, absl::StrCat("\"", above, "\" is not a mapping in ", file_));
      return false;
    }
    if (!next.IsDefined() || next.IsNull()) at[keys[i]] = YAML::Node(YAML::NodeType::Map);
    at.reset(at[keys[i]]);
  }
  at[keys.back()] = value;
  overridden_[path] = flag;
  return true;
}

Location YamlDocument::At(const std::string& path, const YAML::Mark& mark) const {
  for (const auto& [key, flag] : overridden_) {
    bool is_at_or_below = path == key || absl::StartsWith(path, absl::StrCat(key, ".")) ||
                          absl::StartsWith(path, absl::StrCat(key, "["));
    // A mapping without a place was made to hold the override.
    bool is_made_for = mark.is_null() && absl::StartsWith(key, absl::StrCat(path, "."));
    if (is_at_or_below || is_made_for) return {flag};
  }
  return {file_, mark.line + 1, mark.column + 1};
}

}  // namespace kmosaic
