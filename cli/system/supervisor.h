// Starts the daemons of one machine, starts the ones that die again, and ends all in order.
#ifndef KMOSAIC_CLI_SYSTEM_SUPERVISOR_H_
#define KMOSAIC_CLI_SYSTEM_SUPERVISOR_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/program/interrupt.h"
#include "cli/system/restart_policy.h"
#include "common/base/clock.h"
#include "common/lifecycle/child_process.h"
#include "common/lifecycle/ready_line.h"

namespace kmosaic {

// One program to keep running.
struct Daemon {
  std::string name;  // "worker-0"
  // Built anew for each start. `own` is its latest ready line (so that it can come back at
  // the same addresses), `first` that of the first daemon.
  std::function<std::vector<std::string>(const std::optional<ReadyLine>& own,
                                         const std::optional<ReadyLine>& first)>
      arguments;
  std::map<std::string, std::string> env;
  std::string log_path;
};

// The first daemon is started first, and the others once it is ready; they end in the
// reverse order. One thread; it must live as long as the daemons, which die with it.
class Supervisor {
 public:
  struct Options {
    // For one daemon to say that it is ready, at the start.
    absl::Duration ready_timeout = absl::Minutes(5);
    // For one daemon to end after SIGTERM; then it is killed.
    absl::Duration drain_timeout = absl::Minutes(1);
    // Lines for people: "worker-0 ended with exit code 1; starting it again in 1s".
    std::function<void(const std::string&)> say = [](const std::string&) {};
  };

  // `clock` must outlive it.
  Supervisor(std::vector<Daemon> daemons, const Clock& clock, Options options);

  // Returns when all are ready. UNAVAILABLE with the end of its log when one ends or says
  // nothing in time, CANCELLED on `stop`; what runs then is killed by the destructor or
  // ended by Drain.
  absl::Status Start(const Interrupt& stop);

  // Keeps them running until `stop`. One that ends with exit code 0 was told to, say by
  // `kmosaic worker drain`, and is left alone; the first is not, since all need it.
  void Run(const Interrupt& stop);

  // SIGTERM to one after the other, from the last to the first; kills what takes too long, and
  // at once what is still starting: that holds nothing yet.
  void Drain();

  // The ready line of daemon `index`.
  const ReadyLine& ready(size_t index) const { return *slots_[index].ready; }

 private:
  enum class State { kStopped, kStarting, kReady, kWaiting };
  struct Slot {
    Daemon daemon;
    State state = State::kStopped;
    std::optional<ChildProcess> process;
    std::optional<ReadyLine> ready;
    RestartPolicy policy;
    absl::Duration since;
    absl::Duration start_at;
  };

  absl::Status Launch(Slot& slot);
  void Tick(Slot& slot);
  // One step of the first start.
  absl::Status AwaitReady(Slot& slot, const Interrupt& stop);
  // Takes what it printed; whether that made it ready.
  bool ReadOutput(Slot& slot);

  std::vector<Slot> slots_;
  const Clock& clock_;
  const Options options_;
};

// The last `lines` lines of a log file, for an error message; "" when there is none.
std::string LogTail(const std::string& path, int lines);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_SUPERVISOR_H_
