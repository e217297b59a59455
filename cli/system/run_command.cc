#include "cli/system/run_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/lifecycle/child_process.h"

namespace kmosaic {

absl::StatusOr<CommandOutput> RunCommand(const std::vector<std::string>& argv,
                                         absl::Duration timeout) {
  ChildProcess::Options options;
  options.argv = argv;
  options.stderr_path = "/dev/null";
  options.pipe_stdout = true;
  auto process = ChildProcess::Start(options);
  if (!process.ok()) return process.status();
  absl::Time deadline = absl::Now() + timeout;
  CommandOutput output{0, {}};
  while (true) {
    auto line = process->ReadLine(std::max(absl::ZeroDuration(), deadline - absl::Now()));
    if (line.ok()) {
      output.lines.push_back(*std::move(line));
      continue;
    }
    if (absl::IsDeadlineExceeded(line.status())) {
      return absl::DeadlineExceededError(absl::StrCat(argv[0], " did not end in time"));
    }
    break;
  }
  auto exit = process->Wait(std::max(absl::ZeroDuration(), deadline - absl::Now()));
  if (!exit) return absl::DeadlineExceededError(absl::StrCat(argv[0], " did not end in time"));
  output.exit_code = *exit;
  return output;
}

}  // namespace kmosaic
