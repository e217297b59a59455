#include "cli/program/host.h"

#include "cli/program/exit_code.h"

namespace kmosaic {

std::string Host::Env(const std::string& name, const std::string& otherwise) const {
  auto found = env.find(name);
  return found == env.end() || found->second.empty() ? otherwise : found->second;
}

std::string Coloured(const Host& host, Colour colour, const std::string& text) {
  if (!host.out_is_terminal || !host.Env("NO_COLOR").empty()) return text;
  const char* code = "1";
  if (colour == Colour::kGreen) code = "32";
  if (colour == Colour::kRed) code = "31";
  if (colour == Colour::kYellow) code = "33";
  return std::string("\x1b[") + code + "m" + text + "\x1b[0m";
}

int Fail(const Host& host, const absl::Status& status) {
  if (host.interrupt->triggered()) {
    *host.err << "kmosaic: interrupted\n";
    return kExitInterrupted;
  }
  *host.err << "kmosaic: " << status.message() << '\n';
  return ExitCodeFor(status);
}

}  // namespace kmosaic
