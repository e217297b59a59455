// The world around one run of the program, so that tests can hand in another one.
#ifndef KMOSAIC_CLI_PROGRAM_HOST_H_
#define KMOSAIC_CLI_PROGRAM_HOST_H_

#include <cstddef>
#include <istream>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/program/interrupt.h"
#include "common/base/clock.h"

namespace kmosaic {

// Everything it points to outlives it.
struct Host {
  std::istream* in;
  // Results only; everything said to people about progress and errors goes to `err`.
  std::ostream* out;
  std::ostream* err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  // Width of the terminal.
  size_t columns = 80;
  std::map<std::string, std::string> env;
  // Path of this program; its sister programs lie beside it.
  std::string executable;
  const Clock* clock;
  Interrupt* interrupt;

  // The variable, or `otherwise` when it is unset or empty.
  std::string Env(const std::string& name, const std::string& otherwise = "") const;

  // Width that tables on `out` must fit in; 0 (no limit) unless it is a terminal.
  size_t TableWidth() const { return out_is_terminal ? columns : 0; }
};

enum class Colour { kGreen, kRed, kYellow, kBold };

// The text in colour when `out` is a terminal and NO_COLOR is unset, else as it is.
std::string Coloured(const Host& host, Colour colour, const std::string& text);

// Says what went wrong and returns the exit code for it (kExitInterrupted when the user
// stopped the program). `status` is not OK.
int Fail(const Host& host, const absl::Status& status);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_HOST_H_
