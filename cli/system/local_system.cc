#include "cli/system/local_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/system/fleet.h"
#include "cli/system/programs.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

// From a worker's ready line until the coordinator lists it; a moment when all is well.
constexpr absl::Duration kRegistration = absl::Minutes(1);

std::string Log(const SystemOptions& options, const std::string& name) {
  return absl::StrCat(options.data, "/logs/", name, ".log");
}

// The same addresses as before, or free ports the first time.
std::string Grpc(const std::optional<ReadyLine>& own) { return own ? own->grpc : "127.0.0.1:0"; }
std::string Http(const std::optional<ReadyLine>& own) { return own ? own->http : "127.0.0.1:0"; }

Daemon Coordinator(const std::string& program, const SystemOptions& options) {
  Daemon daemon;
  daemon.name = "coordinator";
  daemon.log_path = Log(options, daemon.name);
  daemon.arguments = [program, data = options.data](const auto& own, const auto&) {
    return std::vector<std::string>{program, absl::StrCat("--listen=", Grpc(own)),
                                    absl::StrCat("--http-listen=", Http(own)),
                                    absl::StrCat("--data-dir=", data, "/coordinator")};
  };
  return daemon;
}

Daemon Worker(const std::string& program, const SystemOptions& options, int number,
              const std::string& python, const std::optional<Finding>& toolkit) {
  Daemon daemon;
  daemon.name = absl::StrCat("worker-", number);
  daemon.log_path = Log(options, daemon.name);
  std::vector<std::string> fixed = {
      "--listen=127.0.0.1:0",
      "--http-listen=127.0.0.1:0",
      absl::StrCat("--name=", daemon.name),
      absl::StrCat("--device=", options.device),
      absl::StrCat("--gpu=", number),
      absl::StrCat("--cache-dir=", options.data, "/cache/", daemon.name),
      absl::StrCat("--python=", python)};
  if (toolkit) fixed.push_back(absl::StrCat("--cuda-home=", toolkit->path));
  daemon.arguments = [program, fixed](const auto&, const auto& first) {
    std::vector<std::string> argv = {program, absl::StrCat("--coordinator=", first->grpc)};
    argv.insert(argv.end(), fixed.begin(), fixed.end());
    return argv;
  };
  return daemon;
}

Daemon Runner(const std::string& program, const SystemOptions& options, int number) {
  Daemon daemon;
  daemon.name = absl::StrCat("runner-", number);
  daemon.log_path = Log(options, daemon.name);
  daemon.arguments = [program, name = daemon.name](const auto&, const auto& first) {
    return std::vector<std::string>{program, absl::StrCat("--coordinator=", first->grpc),
                                    "--http-listen=127.0.0.1:0", absl::StrCat("--name=", name)};
  };
  return daemon;
}

}  // namespace

std::string DefaultDataDirectory(const Host& host) {
  std::string home =
      host.Env("XDG_DATA_HOME", absl::StrCat(host.Env("HOME", "/tmp"), "/.local/share"));
  return absl::StrCat(home, "/kmosaic");
}

absl::StatusOr<std::unique_ptr<DataDirectory>> DataDirectory::Open(const std::string& path) {
  std::error_code error;
  std::string absolute = fs::absolute(path, error).lexically_normal().string();
  fs::create_directories(fs::path(absolute) / "logs", error);
  if (error) {
    return ErrnoStatus(error.value(), absl::StrCat("cannot make the data directory ", absolute));
  }
  fs::permissions(absolute, fs::perms::owner_all, error);
  std::string lock = absl::StrCat(absolute, "/up.lock");
  int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", lock));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat("another `kmosaic up` (or --local) uses the data directory ", absolute,
                     "; stop it, use it (without --local), or give another one with --data"));
  }
  return std::unique_ptr<DataDirectory>(new DataDirectory(absolute, fd));
}

DataDirectory::~DataDirectory() { close(fd_); }

absl::StatusOr<std::vector<Daemon>> PlanDaemons(const Host& host, const SystemOptions& options) {
  KMOSAIC_ASSIGN_OR_RETURN(std::string coordinator, FindSisterProgram(host, "kmosaic-coordinator"));
  std::vector<Daemon> daemons = {Coordinator(coordinator, options)};
  if (options.workers > 0) {
    KMOSAIC_ASSIGN_OR_RETURN(std::string worker, FindSisterProgram(host, "kmosaic-gpu-worker"));
    auto python = FindPython(host);
    if (!python) {
      return absl::FailedPreconditionError(
          "there is no python3; install one with torch and numpy, and name it with KMOSAIC_PYTHON");
    }
    auto toolkit = FindToolkit(host, python->path);
    for (int i = 0; i < options.workers; ++i) {
      daemons.push_back(Worker(worker, options, i, python->path, toolkit));
    }
  }
  if (options.runners > 0) {
    KMOSAIC_ASSIGN_OR_RETURN(std::string runner, FindSisterProgram(host, "kmosaic-agent-runner"));
    for (int i = 0; i < options.runners; ++i) daemons.push_back(Runner(runner, options, i));
  }
  return daemons;
}

absl::Status StartSystem(Supervisor& supervisor, const SystemOptions& options, const Clock& clock,
                         Interrupt& stop) {
  KMOSAIC_RETURN_IF_ERROR(supervisor.Start(stop));
  return AwaitWorkers(supervisor.ready(0).grpc, options.workers, kRegistration, clock, stop);
}

absl::StatusOr<std::unique_ptr<TemporarySystem>> TemporarySystem::Start(Host& host,
                                                                        SystemOptions options) {
  std::unique_ptr<TemporarySystem> system(new TemporarySystem);
  if (options.data.empty()) {
    std::string name = absl::StrCat(host.Env("TMPDIR", "/tmp"), "/kmosaic-XXXXXX");
    if (mkdtemp(name.data()) == nullptr) {
      return ErrnoStatus(errno, absl::StrCat("cannot make a temporary directory ", name));
    }
    options.data = system->temporary_ = name;
  }
  KMOSAIC_ASSIGN_OR_RETURN(system->data_, DataDirectory::Open(options.data));
  options.data = system->data_->path();
  KMOSAIC_ASSIGN_OR_RETURN(std::vector<Daemon> daemons, PlanDaemons(host, options));
  *host.err << "starting a system for this command (logs in " << options.data << "/logs) ...\n"
            << std::flush;
  system->supervisor_ =
      std::make_unique<Supervisor>(std::move(daemons), *host.clock, Supervisor::Options{});
  std::promise<absl::Status> started;
  system->thread_ = std::thread([system = system.get(), &started, &options, &host] {
    absl::Status status = StartSystem(*system->supervisor_, options, *host.clock, system->stop_);
    bool run = status.ok();
    started.set_value(std::move(status));
    if (run) system->supervisor_->Run(system->stop_);
    system->supervisor_->Drain();
  });
  absl::Status status;
  {
    // Ctrl-C while it starts ends the start. Later it stops the command first, which then
    // ends the system.
    Interrupt::Scope scope(*host.interrupt, [system = system.get()] { system->stop_.Trigger(); });
    status = started.get_future().get();
  }
  KMOSAIC_RETURN_IF_ERROR(status);
  system->coordinator_ = system->supervisor_->ready(0).grpc;
  return system;
}

TemporarySystem::~TemporarySystem() {
  stop_.Trigger();
  if (thread_.joinable()) thread_.join();
  data_.reset();
  if (!temporary_.empty()) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
}

}  // namespace kmosaic
