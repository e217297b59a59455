#include "cli/program/refresh.h"

#include "cli/program/exit_code.h"

namespace kmosaic {

int Refresh(Host& host, bool again, const std::function<absl::Status()>& print) {
  while (true) {
    // Cursor home, erase everything below.
    if (again && host.out_is_terminal) *host.out << "\x1b[H\x1b[J";
    if (absl::Status status = print(); !status.ok()) return Fail(host, status);
    *host.out << std::flush;
    if (!again || !host.out->good()) return kExitDone;
    if (host.interrupt->WaitFor(absl::Seconds(2))) return kExitInterrupted;
  }
}

}  // namespace kmosaic
