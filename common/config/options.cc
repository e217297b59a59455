#include "common/config/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/version.h"
#include "common/config/yaml_config.h"

namespace kmosaic {
namespace {

std::string EnvironmentName(const std::string& option) {
  return absl::StrCat("KMOSAIC_", absl::AsciiStrToUpper(absl::StrReplaceAll(option, {{"-", "_"}})));
}

std::string YamlKey(const std::string& option) { return absl::StrReplaceAll(option, {{"-", "_"}}); }

struct Declared {
  std::string name;
  std::string type;
  std::string default_text;
  std::string help;
};

}  // namespace

struct Options::Impl {
  CLI::App app;
  std::vector<Declared> declared;
  bool markdown = false;

  CLI::Option* Declare(const std::string& name, const std::string& type,
                       const std::string& default_text, const std::string& help,
                       CLI::callback_t callback) {
    declared.push_back({name, type, default_text, help});
    return app.add_option("--" + name, std::move(callback), help)
        ->envname(EnvironmentName(name))
        ->type_name(type)
        ->default_str(default_text);
  }

  // `read` returns false for text that is not a value of this type.
  template <typename Read>
  void DeclareScalar(const std::string& name, const std::string& type,
                     const std::string& default_text, const std::string& help, Read read) {
    Declare(name, type, default_text, help, [name, type, read](const CLI::results_t& values) {
      if (!read(values.back())) {
        throw CLI::ValidationError("--" + name,
                                   "\"" + values.back() + "\" is not a " + type + " value");
      }
      return true;
    })->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
};

Options::Options(std::string program, std::string description) : impl_(std::make_unique<Impl>()) {
  CLI::App& app = impl_->app;
  app.name(program);
  app.description(std::move(description));
  app.set_version_flag("--version", absl::StrCat(program, " ", kVersion));
  app.add_flag("--help-markdown", impl_->markdown, "print this reference as Markdown");
  app.set_config("--config")->envname("KMOSAIC_CONFIG");
  app.config_formatter(std::make_shared<YamlConfig>([](const std::string& option) {
    return std::getenv(EnvironmentName(option).c_str()) != nullptr;
  }));
  app.allow_config_extras(CLI::config_extras_mode::error);
}

Options::~Options() = default;

void Options::Add(const std::string& name, std::string* target, const std::string& help) {
  impl_->DeclareScalar(name, "text", *target, help, [target](const std::string& text) {
    *target = text;
    return true;
  });
}

void Options::Add(const std::string& name, int64_t* target, const std::string& help) {
  impl_->DeclareScalar(
      name, "integer", absl::StrCat(*target), help,
      [target](const std::string& text) { return CLI::detail::lexical_cast(text, *target); });
}

void Options::Add(const std::string& name, double* target, const std::string& help) {
  impl_->DeclareScalar(
      name, "number", absl::StrCat(*target), help,
      [target](const std::string& text) { return CLI::detail::lexical_cast(text, *target); });
}

void Options::Add(const std::string& name, bool* target, const std::string& help) {
  impl_->declared.push_back({name, "flag", *target ? "true" : "false", help});
  impl_->app.add_flag("--" + name + ",!--no-" + name, *target, help)
      ->envname(EnvironmentName(name));
}

void Options::Add(const std::string& name, absl::Duration* target, const std::string& help) {
  impl_->DeclareScalar(
      name, "duration", absl::FormatDuration(*target), help, [target](const std::string& text) {
        return absl::ParseDuration(text, target) && *target >= absl::ZeroDuration();
      });
}

void Options::Add(const std::string& name, std::map<std::string, std::string>* target,
                  const std::string& help) {
  std::string default_text = absl::StrJoin(*target, ",", absl::PairFormatter("="));
  impl_
      ->Declare(name, "KEY=VALUE", default_text, help,
                [name, target](const CLI::results_t& values) {
                  target->clear();
                  for (const std::string& value : values) {
                    size_t equals = value.find('=');
                    if (equals == 0 || equals == std::string::npos) {
                      throw CLI::ValidationError("--" + name, "\"" + value + "\" is not KEY=VALUE");
                    }
                    (*target)[value.substr(0, equals)] = value.substr(equals + 1);
                  }
                  return true;
                })
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->delimiter(',');
}

void Options::Add(const std::string& name, std::vector<std::string>* target,
                  const std::string& help) {
  impl_
      ->Declare(name, "list", absl::StrJoin(*target, ","), help,
                [target](const CLI::results_t& values) {
                  *target = values;
                  return true;
                })
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->delimiter(',');
}

std::optional<int> Options::Parse(int argc, const char* const* argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help and version itself; its error codes are not ours.
    return impl_->app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (impl_->markdown) {
    std::cout << Markdown();
    return 0;
  }
  return std::nullopt;
}

std::string Options::Markdown() const {
  std::string text =
      absl::StrCat("## ", impl_->app.get_name(), "\n\n", impl_->app.get_description(),
                   "\n\n| flag | environment | YAML key | type | default | meaning |\n"
                   "|---|---|---|---|---|---|\n");
  for (const Declared& option : impl_->declared) {
    absl::StrAppend(&text, "| `--", option.name, "` | `", EnvironmentName(option.name), "` | `",
                    YamlKey(option.name), "` | ", option.type, " | ",
                    option.default_text.empty() ? "" : absl::StrCat("`", option.default_text, "`"),
                    " | ", option.help, " |\n");
  }
  return text;
}

}  // namespace kmosaic
