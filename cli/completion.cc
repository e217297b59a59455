// kmosaic completion: shell completion, made from the same declarations as --help.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/program/exit_code.h"
#include "cli/program/program.h"

namespace kmosaic {
namespace {

// What may follow a command: its subcommands and options, and the global options.
struct Level {
  // "", "job", "job list".
  std::string path;
  std::vector<std::string> words;
};

void AddOptions(const CLI::App& app, std::vector<std::string>& words) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
}

void Collect(const CLI::App& root, const CLI::App& app, const std::string& path,
             std::vector<Level>& levels) {
  Level level{path, {}};
  for (const CLI::App* sub : app.get_subcommands({})) level.words.push_back(sub->get_name());
  AddOptions(app, level.words);
  if (&app != &root) AddOptions(root, level.words);
  levels.push_back(level);
  for (const CLI::App* sub : app.get_subcommands({})) {
    Collect(root, *sub, path.empty() ? sub->get_name() : absl::StrCat(path, " ", sub->get_name()),
            levels);
  }
}

// One function for both shells: zsh runs it through bashcompinit.
std::string Script(const std::vector<Level>& levels, bool zsh) {
  std::string script = "# Completion of kmosaic; made by `kmosaic completion`.\n";
  if (zsh) absl::StrAppend(&script, "autoload -Uz bashcompinit && bashcompinit\n");
  absl::StrAppend(&script,
                  "_kmosaic() {\n"
                  "  local current=${COMP_WORDS[COMP_CWORD]} path= words= i word\n"
                  "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "    word=${COMP_WORDS[i]}\n"
                  "    case \"${path:+$path }$word\" in\n");
  for (const Level& level : levels) {
    if (!level.path.empty())
      absl::StrAppend(&script, "      '", level.path, "') path='", level.path, "' ;;\n");
  }
  absl::StrAppend(&script, "    esac\n  done\n  case \"$path\" in\n");
  for (const Level& level : levels) {
    absl::StrAppend(&script, "    '", level.path, "') words='", absl::StrJoin(level.words, " "),
                    "' ;;\n");
  }
  absl::StrAppend(&script,
                  "  esac\n"
                  "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                  // Files, where no word fits and no option was begun.
                  "  if [ ${#COMPREPLY[@]} -eq 0 ] && [ \"${current#-}\" = \"$current\" ]; then\n"
                  "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
                  "  fi\n"
                  "}\n"
                  "complete -o filenames -F _kmosaic kmosaic\n");
  return script;
}

}  // namespace

void AddCompletionCommand(CLI::App& app, CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a completion script: source <(kmosaic completion bash)");
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""))
      ->type_name("");
  // The script is made while the app that it describes is there.
  command->callback([&app, shell, &line] {
    std::vector<Level> levels;
    Collect(app, app, "", levels);
    std::string script = Script(levels, *shell == "zsh");
    line.action = [script](Host& host) {
      *host.out << script;
      return static_cast<int>(kExitDone);
    };
  });
}

}  // namespace kmosaic
