// The `kmosaic` program: wiring only.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "cli/program/host.h"
#include "cli/program/program.h"
#include "common/base/install.h"
#include "common/lifecycle/shutdown.h"

extern char** environ;

namespace {

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    size_t equals = text.find('=');
    if (equals != std::string::npos) env[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return env;
}

size_t TerminalColumns() {
  for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 80;
}

}  // namespace

int main(int argc, char** argv) {
  // gRPC's own lines on standard error say nothing that our messages do not.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  kmosaic::Interrupt interrupt;
  kmosaic::ShutdownSignals signals([&interrupt] { interrupt.Trigger(); });
  kmosaic::SystemClock clock;
  kmosaic::Host host;
  host.in = &std::cin;
  host.out = &std::cout;
  host.err = &std::cerr;
  host.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  host.err_is_terminal = isatty(STDERR_FILENO) == 1;
  host.columns = TerminalColumns();
  host.env = Environment();
  host.executable = kmosaic::ProgramPath("kmosaic");
  host.clock = &clock;
  host.interrupt = &interrupt;
  return kmosaic::RunProgram(std::vector<std::string>(argv + 1, argv + argc), host);
}
