// A YAML file with the --set overrides of the command line, and where each value is from.
#ifndef KMOSAIC_CLI_TASKFILES_YAML_DOCUMENT_H_
#define KMOSAIC_CLI_TASKFILES_YAML_DOCUMENT_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/taskfiles/problems.h"

namespace kmosaic {

class YamlDocument {
 public:
  // `overrides` are KEY=VALUE texts: KEY a dotted path ("endpoint.model"), VALUE read as
  // YAML. Nothing, and problems, when the text is not one YAML mapping or an override does
  // not fit into it.
  static std::optional<YamlDocument> Parse(const std::string& file, const std::string& text,
                                           const std::vector<std::string>& overrides,
                                           Problems& problems);

  const YAML::Node& root() const { return root_; }
  const std::string& file() const { return file_; }

  // Place of `mark`, or of the override that set `path` or something above it.
  Location At(const std::string& path, const YAML::Mark& mark) const;

 private:
  bool Override(const std::string& text, Problems& problems);

  std::string file_;
  YAML::Node root_;
  // Dotted path -> "--set KEY".
  std::map<std::string, std::string> overridden_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_YAML_DOCUMENT_H_
