// A child program that does not outlive this process.
#ifndef KMOSAIC_COMMON_LIFECYCLE_CHILD_PROCESS_H_
#define KMOSAIC_COMMON_LIFECYCLE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kmosaic {

// Move-only; the destructor kills (SIGKILL) and reaps what still runs. One thread at a
// time.
class ChildProcess {
 public:
  struct Options {
    // argv[0] is a path, or a name looked up in PATH.
    std::vector<std::string> argv;
    // Added to this process's environment, or the whole of it when `clear_env`.
    std::map<std::string, std::string> env;
    bool clear_env = false;
    // File that standard error is appended to; empty: shared with this process.
    std::string stderr_path;
    // Read standard output through ReadLine; otherwise it is shared.
    bool pipe_stdout = false;
    // The kernel kills the child when the thread that started it ends. Start such
    // children from a thread that lives as long as the process.
    bool die_with_parent = true;
    // A group of its own: Ctrl-C on the terminal reaches this process alone, which then
    // decides in what order its children end.
    bool own_process_group = false;
  };

  // NOT_FOUND when there is no such program.
  static absl::StatusOr<ChildProcess> Start(const Options& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }

  // Next line of its standard output without the newline; UNAVAILABLE at its end,
  // DEADLINE_EXCEEDED after `timeout`.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);

  void Signal(int signal_number) const;

  // Exit code, or 128 + signal; nothing while it runs.
  std::optional<int> Poll();

  // Waits for its end; nothing after `timeout`.
  std::optional<int> Wait(absl::Duration timeout);

 private:
  ChildProcess() = default;
  void Destroy();

  pid_t pid_ = -1;
  int pidfd_ = -1;
  int stdout_fd_ = -1;
  std::string buffered_;
  std::optional<int> exit_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_LIFECYCLE_CHILD_PROCESS_H_
