// kmosaic-coordinator: jobs, the queue, and who may use which worker.
#include <string>

#include "common/base/clock.h"
#include "common/config/options.h"
#include "common/lifecycle/ready_line.h"
#include "common/lifecycle/shutdown.h"
#include "common/log/log.h"
#include "coordinator/server.h"
#include "coordinator/store_commands.h"

namespace {

constexpr char kProcess[] = "kmosaic-coordinator";
constexpr int kExitFailed = 1;

struct Flags {
  kmosaic::CoordinatorServer::Options server;
  int64_t disk_submit_bytes = static_cast<int64_t>(server.disk.submit_bytes);
  int64_t disk_read_only_bytes = static_cast<int64_t>(server.disk.read_only_bytes);
  std::string log_level = "info";
  bool check = false;
  std::string restore_from;
};

void AddOptions(Flags& flags, kmosaic::Options& options) {
  kmosaic::CoordinatorServer::Options& server = flags.server;
  options.Add("listen", &server.listen, "gRPC: HOST:PORT (port 0 takes a free one) or unix:PATH");
  options.Add("http-listen", &server.http_listen,
              "HOST:PORT of /metrics, /healthz and /sd/prometheus");
  options.Add("data-dir", &server.data_dir,
              "directory of everything durable; made when it is not there (required)");
  options.Add("shards", &server.shards,
              "stores and threads of the queue; one carries what docs/benchmarks.md says");
  options.Add("lease-ttl", &server.queue.lease_ttl,
              "a task whose runner is silent for this long goes to another one");
  options.Add("worker-sync", &server.placement.sync_interval, "how often workers tell their state");
  options.Add("worker-lost-after", &server.placement.lost_after,
              "a worker that is silent for this long is lost");
  options.Add("worker-grace", &server.placement.grace,
              "how long after the start (or the loss of a worker) a requirement that no worker "
              "meets waits instead of failing");
  options.Add("grace", &server.grace, "time for running calls to end when stopping");
  options.Add("disk-submit-bytes", &flags.disk_submit_bytes,
              "with less free space than this, new jobs are refused");
  options.Add("disk-read-only-bytes", &flags.disk_read_only_bytes,
              "with less free space than this, nothing is written");
  options.Add("check", &flags.check,
              "check the store in --data-dir, print what it holds, and end (kmosaic store check)");
  options.Add("restore-from", &flags.restore_from,
              "make --data-dir from this backup, check it, and end (kmosaic store restore)");
  options.Add("log-level", &flags.log_level, "debug, info, warning or error");
}

// Empty when the options make sense together.
std::string Check(const Flags& flags) {
  const kmosaic::CoordinatorServer::Options& server = flags.server;
  if (server.data_dir.empty()) return "--data-dir is required";
  if (server.shards < 1 || server.shards > 64) return "--shards must be from 1 to 64";
  if (server.queue.lease_ttl < absl::Seconds(3)) return "--lease-ttl must be at least 3s";
  if (server.placement.sync_interval <= absl::ZeroDuration() ||
      server.placement.lost_after < 2 * server.placement.sync_interval) {
    return "--worker-lost-after must be at least twice --worker-sync, which must be above 0";
  }
  if (flags.disk_read_only_bytes < 0 || flags.disk_submit_bytes < flags.disk_read_only_bytes) {
    return "--disk-submit-bytes must be at least --disk-read-only-bytes, and that at least 0";
  }
  return "";
}

// Prints what a command found.
int Print(const absl::StatusOr<std::string>& found) {
  if (found.ok()) {
    printf("%s\n", found->c_str());
    return 0;
  }
  fprintf(stderr, "%s: %s\n", kProcess, std::string(found.status().message()).c_str());
  return kExitFailed;
}

int Run(Flags& flags) {
  kmosaic::Event stop;
  bool failed = false;
  kmosaic::ShutdownSignals signals([&stop] {
    kmosaic::LogInfo("stopping");
    stop.Set();
  });
  flags.server.disk.submit_bytes = static_cast<uint64_t>(flags.disk_submit_bytes);
  flags.server.disk.read_only_bytes = static_cast<uint64_t>(flags.disk_read_only_bytes);
  flags.server.on_fatal = [&](const absl::Status& status) {
    kmosaic::LogError("the store failed; start the coordinator again",
                      {{"error", status.ToString()}});
    failed = true;  // before Set, which orders it for the thread that waits
    stop.Set();
  };
  // A lease outlives one lost sign of life.
  flags.server.queue.sync_interval =
      std::min(flags.server.queue.sync_interval, flags.server.queue.lease_ttl / 2);

  kmosaic::SystemClock clock;
  auto server = kmosaic::CoordinatorServer::Start(flags.server, clock);
  if (!server.ok()) {
    kmosaic::LogError("cannot start", {{"error", std::string(server.status().message())}});
    return kExitFailed;
  }
  kmosaic::LogInfo("serving", {{"grpc", (*server)->target()},
                               {"http", (*server)->http_address()},
                               {"data_dir", flags.server.data_dir}});
  kmosaic::PrintReadyLine({kProcess, (*server)->target(), (*server)->http_address()});
  stop.Wait();
  (*server)->StopServing();
  server->reset();
  kmosaic::LogInfo("stopped");
  return failed ? kExitFailed : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  kmosaic::Options options(kProcess, "Keeps jobs and hands out tasks and worker slots.");
  AddOptions(flags, options);
  if (std::optional<int> code = options.Parse(argc, argv)) return *code;
  kmosaic::LogLevel level;
  std::string wrong = Check(flags);
  if (!kmosaic::ParseLogLevel(flags.log_level, &level)) {
    wrong = "--log-level must be debug, info, warning or error";
  }
  if (!wrong.empty()) {
    fprintf(stderr, "%s: %s\n", kProcess, wrong.c_str());
    return kmosaic::kExitUsage;
  }
  kmosaic::StartLog(kProcess, level);
  if (!flags.restore_from.empty()) {
    return Print(kmosaic::RestoreDataDirectory(flags.restore_from, flags.server.data_dir));
  }
  if (flags.check) return Print(kmosaic::CheckDataDirectory(flags.server.data_dir));
  return Run(flags);
}
