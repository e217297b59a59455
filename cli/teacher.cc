// kmosaic teacher: the scripted endpoint that answers generated tasks.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/program/program.h"
#include "cli/system/python_module.h"

namespace kmosaic {
namespace {

struct TeacherArguments {
  std::vector<std::string> folders;
  std::string address = "127.0.0.1";
  int port = 0;
  int seed = 0;
};

int Teach(Host& host, const TeacherArguments& arguments) {
  std::vector<std::string> passed = arguments.folders;
  for (const std::string& argument :
       {absl::StrCat("--host=", arguments.address), absl::StrCat("--port=", arguments.port),
        absl::StrCat("--seed=", arguments.seed)}) {
    passed.push_back(argument);
  }
  return RunPythonModule(host, "teacher", passed);
}

}  // namespace

void AddTeacherCommand(CLI::App& app, CommandLine& line) {
  auto arguments = std::make_shared<TeacherArguments>();
  CLI::App* teacher = app.add_subcommand(
      "teacher", "Serve an OpenAI-compatible endpoint that solves generated tasks from templates");
  teacher->add_option("FOLDER", arguments->folders, "folders of `kmosaic task generate`")
      ->required()
      ->type_name("");
  teacher->add_option("--host", arguments->address, "address to listen on")->capture_default_str();
  teacher->add_option("--port", arguments->port, "0 takes a free one; the first line says which")
      ->capture_default_str();
  teacher->add_option("--seed", arguments->seed, "of its mistakes")->capture_default_str();
  teacher->callback([arguments, &line] {
    line.action = [arguments](Host& host) { return Teach(host, *arguments); };
  });
}

}  // namespace kmosaic
