#include "common/config/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace kmosaic {
namespace {

std::string Position(const YAML::Mark& mark) {
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1);
}

std::string Scalar(const YAML::Node& node, const std::string& key) {
  if (!node.IsScalar()) {
    throw CLI::FileError("configuration: " + Position(node.Mark()) + ": value of \"" + key +
                         "\" must be a scalar here");
  }
  return node.Scalar();
}

}  // namespace

std::string YamlConfig::to_config(const CLI::App*, bool, bool, std::string) const {
  return {};  // configuration is only read
}

std::vector<CLI::ConfigItem> YamlConfig::from_config(std::istream& input) const {
  YAML::Node root;
  try {
    root = YAML::Load(input);
  } catch (const YAML::Exception& error) {
    throw CLI::FileError("configuration: " + Position(error.mark) + ": " + error.msg);
  }
  std::vector<CLI::ConfigItem> read;
  if (root.IsNull()) return read;
  if (!root.IsMap()) throw CLI::FileError("configuration: the top level must be a mapping");
  for (const auto& entry : root) {
    CLI::ConfigItem item;
    std::string key = Scalar(entry.first, "a key");
    item.name = key;
    std::replace(item.name.begin(), item.name.end(), '_', '-');
    if (entry.second.IsSequence()) {
      for (const auto& value : entry.second) item.inputs.push_back(Scalar(value, key));
    } else if (entry.second.IsMap()) {
      for (const auto& value : entry.second) {
        item.inputs.push_back(Scalar(value.first, key) + "=" + Scalar(value.second, key));
      }
    } else {
      item.inputs.push_back(Scalar(entry.second, key));
    }
    if (!overridden_(item.name)) read.push_back(std::move(item));
  }
  return read;
}

}  // namespace kmosaic
