// The whole system on this machine: one coordinator, its workers and runners on loopback.
#ifndef KMOSAIC_CLI_SYSTEM_LOCAL_SYSTEM_H_
#define KMOSAIC_CLI_SYSTEM_LOCAL_SYSTEM_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/program/host.h"
#include "cli/system/supervisor.h"

namespace kmosaic {

struct SystemOptions {
  // Directory of everything that is kept; made when it is not there.
  std::string data;
  // "auto", "cuda" or "emulated", as the worker takes it.
  std::string device = "auto";
  int runners = 1;
  int workers = 1;
};

// $XDG_DATA_HOME/kmosaic, or ~/.local/share/kmosaic.
std::string DefaultDataDirectory(const Host& host);

// A data directory that no other LocalSystem uses while this lives.
class DataDirectory {
 public:
  // Makes it (mode 0700) with logs/. FAILED_PRECONDITION when another one uses it.
  static absl::StatusOr<std::unique_ptr<DataDirectory>> Open(const std::string& path);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  // Absolute.
  const std::string& path() const { return path_; }

 private:
  DataDirectory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

// What is to run, the coordinator first. NOT_FOUND when a program is missing,
// FAILED_PRECONDITION when there is no Python.
absl::StatusOr<std::vector<Daemon>> PlanDaemons(const Host& host, const SystemOptions& options);

// Starts what was planned and returns once the coordinator has all workers of `options`.
// Errors as Supervisor::Start and AwaitWorkers; what runs then is for the caller to drain.
absl::Status StartSystem(Supervisor& supervisor, const SystemOptions& options, const Clock& clock,
                         Interrupt& stop);

// A system for the length of one command (--local). The destructor drains it.
class TemporarySystem {
 public:
  // Returns when everything is ready. With an empty `options.data` it lives in a temporary
  // directory that goes with it.
  static absl::StatusOr<std::unique_ptr<TemporarySystem>> Start(Host& host, SystemOptions options);
  ~TemporarySystem();
  TemporarySystem(const TemporarySystem&) = delete;
  TemporarySystem& operator=(const TemporarySystem&) = delete;

  // gRPC target of its coordinator.
  const std::string& coordinator() const { return coordinator_; }

 private:
  TemporarySystem() = default;

  std::string temporary_;
  std::unique_ptr<DataDirectory> data_;
  std::unique_ptr<Supervisor> supervisor_;
  std::string coordinator_;
  Interrupt stop_;
  // Starts the daemons too: they die with the thread that started them.
  std::thread thread_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_LOCAL_SYSTEM_H_
