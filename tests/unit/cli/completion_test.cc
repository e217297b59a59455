#include <catch2/catch.hpp>

#include "cli/system/run_command.h"
#include "tests/unit/cli/files.h"
#include "tests/unit/cli/test_host.h"

using namespace kmosaic;

namespace {

// What bash offers after these words.
std::vector<std::string> Offered(const std::string& script, const std::string& words) {
  TempDir temp;
  WriteFile(temp.path() + "/c.bash", script + "COMP_WORDS=(kmosaic " + words +
                                         ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                                         "_kmosaic\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  auto output = RunCommand({"bash", temp.path() + "/c.bash"}, absl::Seconds(60));
  REQUIRE(output.ok());
  return output->lines;
}

}  // namespace

TEST_CASE("Bash completes commands, subcommands and options") {
  TestHost test;
  REQUIRE(test.Run({"completion", "bash"}) == 0);
  std::string script = test.out.str();
  CHECK(Offered(script, "sub") == std::vector<std::string>{"submit"});
  CHECK(Offered(script, "job re") == std::vector<std::string>{"resume", "retry"});
  CHECK(Offered(script, "job list --wa") == std::vector<std::string>{"--watch"});
  CHECK(Offered(script, "submit x.yaml --dry") == std::vector<std::string>{"--dry-run"});
  CHECK(Offered(script, "job list --coord") == std::vector<std::string>{"--coordinator"});
}

TEST_CASE("Only shells that are known get a script") {
  TestHost test;
  CHECK(test.Run({"completion", "zsh"}) == 0);
  CHECK(test.out.str().find("bashcompinit") != std::string::npos);
  CHECK(test.Run({"completion", "fish"}) == 2);
}
