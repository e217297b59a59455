// Lets CLI11 read its configuration file as YAML.
#ifndef KMOSAIC_COMMON_CONFIG_YAML_CONFIG_H_
#define KMOSAIC_COMMON_CONFIG_YAML_CONFIG_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace kmosaic {

// Top-level keys are option names with '_' for '-'. Values are scalars, sequences of
// scalars, or mappings of scalars (read as KEY=VALUE entries).
class YamlConfig : public CLI::Config {
 public:
  // Keys of options for which `overridden` is true are read and checked for form, but
  // left out: CLI11 alone would let the file win over the environment.
  explicit YamlConfig(std::function<bool(const std::string& option)> overridden)
      : overridden_(std::move(overridden)) {}

  std::string to_config(const CLI::App* app, bool default_also, bool write_description,
                        std::string prefix) const override;
  // Throws CLI::FileError with line and column on malformed YAML.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  const std::function<bool(const std::string&)> overridden_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_CONFIG_YAML_CONFIG_H_
