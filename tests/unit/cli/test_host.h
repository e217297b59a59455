// A world for one run of the program, with text in place of the terminal.
#ifndef KMOSAIC_TESTS_UNIT_CLI_TEST_HOST_H_
#define KMOSAIC_TESTS_UNIT_CLI_TEST_HOST_H_

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program/host.h"
#include "cli/program/program.h"
#include "common/base/clock.h"
#include "tests/testing/temp_dir.h"

namespace kmosaic {

struct TestHost {
  TempDir temp;
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  SystemClock clock;
  Interrupt interrupt;
  Host host;

  TestHost() {
    host.in = &in;
    host.out = &out;
    host.err = &err;
    host.env = {{"HOME", temp.path()}, {"XDG_RUNTIME_DIR", temp.path() + "/run"}};
    host.executable = temp.path() + "/bin/kmosaic";
    host.clock = &clock;
    host.interrupt = &interrupt;
  }

  // Runs the program; `out` and `err` hold what this run printed.
  int Run(const std::vector<std::string>& arguments) {
    out.str("");
    err.str("");
    return RunProgram(arguments, host);
  }

  nlohmann::json Json() const { return nlohmann::json::parse(out.str()); }
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_CLI_TEST_HOST_H_
