// Load on a real coordinator over gRPC: starts one on an empty directory, drives it, prints
// one line of JSON.
//
//   queue_load --coordinator build/release/bin/kmosaic-coordinator --clients 64 --batch 64
//
// A lifecycle is: a task is submitted, leased and completed, each durable before the reply.
// Without --backlog every client submits `batch` tasks, leases as many and completes them,
// round after round. With --backlog so many tasks are submitted first, and then clients
// lease and complete; afterwards the coordinator is started again on the same store.
#include <grpcpp/channel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/config/options.h"
#include "tests/bench/load_clients.h"
#include "tests/bench/load_numbers.h"
#include "tests/bench/subject.h"

namespace kmosaic {
namespace {

struct Flags {
  std::string coordinator;
  std::string data_dir;
  std::string verbs = "session";
  int64_t clients = 1;
  int64_t batch = 1;
  int64_t payload = 120;
  int64_t seconds = 5;
  int64_t backlog = 0;
  int64_t job_tasks = 500'000;
};

uint64_t DiskBytes(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat status = {};
    if (lstat(entry.path().c_str(), &status) == 0) {
      bytes += static_cast<uint64_t>(status.st_blocks) * 512;
    }
  }
  return bytes;
}

struct Outcome {
  uint64_t lifecycles = 0;
  double seconds = 0;
  Latencies leases;
  Latencies submits;
  double server_cpu = 0;
  double client_cpu = 0;
  absl::Status status;
};

Outcome Drive(const Flags& flags, const Subject& subject, const std::string& job, bool submit) {
  Outcome total;
  std::mutex mutex;
  std::atomic<uint64_t> next_task{1'000'000'000};
  double server_before = CpuSeconds(subject.pid());
  double client_before = CpuSeconds(getpid());
  absl::Time begin = absl::Now();
  absl::Time end = begin + absl::Seconds(flags.seconds);
  auto work = [&](int number) {
    Outcome own;
    size_t payload = static_cast<size_t>(flags.payload);
    uint32_t batch = static_cast<uint32_t>(flags.batch);
    std::unique_ptr<LoadClient> client;
    if (flags.verbs == "session") {
      absl::StatusOr<std::unique_ptr<LoadClient>> made =
          MakeSessionClient(subject.target(), number, job, payload);
      if (made.ok()) client = *std::move(made);
      own.status = made.status();
    } else {
      client = MakeUnaryClient(subject.target(), number, payload);
    }
    while (own.status.ok() && absl::Now() < end) {
      if (submit) {
        absl::Time before = absl::Now();
        own.status = client->Submit(next_task.fetch_add(batch), batch);
        own.submits.Add(absl::Now() - before);
        if (!own.status.ok()) break;
      }
      absl::Time before = absl::Now();
      absl::StatusOr<uint64_t> leased = client->CompleteAndLease(batch);
      own.leases.Add(absl::Now() - before);
      own.status = leased.status();
      if (leased.ok()) own.lifecycles += *leased;
    }
    if (own.status.ok()) own.status = client->CompleteAndLease(0).status();
    std::lock_guard lock(mutex);
    total.lifecycles += own.lifecycles;
    total.leases.AddAll(own.leases);
    total.submits.AddAll(own.submits);
    total.status.Update(own.status);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.clients; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  total.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  total.server_cpu = CpuSeconds(subject.pid()) - server_before;
  total.client_cpu = CpuSeconds(getpid()) - client_before;
  return total;
}

nlohmann::json ToJson(const Outcome& outcome) {
  double each = outcome.lifecycles == 0 ? 0 : 1e6 / static_cast<double>(outcome.lifecycles);
  return {{"lifecycles", outcome.lifecycles},
          {"lifecycles_per_second", static_cast<double>(outcome.lifecycles) / outcome.seconds},
          {"lease_p50_ms", outcome.leases.Quantile(0.5) * 1e3},
          {"lease_p99_ms", outcome.leases.Quantile(0.99) * 1e3},
          {"submit_p50_ms", outcome.submits.Quantile(0.5) * 1e3},
          {"submit_p99_ms", outcome.submits.Quantile(0.99) * 1e3},
          {"server_cpu_us_per_lifecycle", outcome.server_cpu * each},
          {"client_cpu_us_per_lifecycle", outcome.client_cpu * each},
          {"server_cores", outcome.server_cpu / outcome.seconds},
          {"client_cores", outcome.client_cpu / outcome.seconds}};
}

absl::Status Run(const Flags& flags, nlohmann::json& report) {
  Subject subject(flags.coordinator, flags.data_dir);
  if (absl::Status status = subject.Start(); !status.ok()) return status;
  std::unique_ptr<v1::JobService::Stub> jobs =
      v1::JobService::NewStub(OwnConnection(subject.target(), -1));
  report["rss_empty_bytes"] = ResidentBytes(subject.pid());
  std::string job;
  uint64_t backlog = static_cast<uint64_t>(flags.backlog);
  if (backlog > 0) {
    absl::Time begin = absl::Now();
    for (uint64_t sent = 0; sent < backlog;) {
      uint64_t count = std::min<uint64_t>(static_cast<uint64_t>(flags.job_tasks), backlog - sent);
      absl::StatusOr<std::string> made =
          SubmitJob(*jobs, LoadSpec("backlog", 1), sent, count, static_cast<size_t>(flags.payload));
      if (!made.ok()) return made.status();
      job = *made;
      sent += count;
    }
    report["backlog"] = backlog;
    report["submit_seconds"] = absl::ToDoubleSeconds(absl::Now() - begin);
    report["rss_backlog_bytes"] = ResidentBytes(subject.pid());
    report["disk_bytes"] = DiskBytes(flags.data_dir);
  } else if (flags.verbs == "session") {
    absl::StatusOr<std::string> made =
        SubmitJob(*jobs, LoadSpec("load", 1), 0, 1, static_cast<size_t>(flags.payload));
    if (!made.ok()) return made.status();
    job = *made;
  }
  Outcome outcome = Drive(flags, subject, job, backlog == 0);
  if (!outcome.status.ok()) return outcome.status;
  report["load"] = ToJson(outcome);
  report["rss_after_bytes"] = ResidentBytes(subject.pid());
  if (backlog == 0) return subject.Stop();

  if (absl::Status status = subject.Stop(); !status.ok()) return status;
  report["disk_after_bytes"] = DiskBytes(flags.data_dir);
  if (absl::Status status = subject.Start(); !status.ok()) return status;
  report["restart_seconds"] = subject.start_seconds();
  report["rss_restart_bytes"] = ResidentBytes(subject.pid());
  outcome = Drive(flags, subject, job, false);
  if (!outcome.status.ok()) return outcome.status;
  report["load_after_restart"] = ToJson(outcome);
  return subject.Stop();
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) {
  kmosaic::Flags flags;
  kmosaic::Options options("queue_load", "Drives a coordinator with simulated clients.");
  options.Add("coordinator", &flags.coordinator, "kmosaic-coordinator to start");
  options.Add("data-dir", &flags.data_dir, "its data directory; has to be empty");
  options.Add("verbs", &flags.verbs, "session (Session, Extend) or unary (Submit, Sync, Complete)");
  options.Add("clients", &flags.clients, "clients, each with its own connection and thread");
  options.Add("batch", &flags.batch, "tasks in one message");
  options.Add("payload", &flags.payload, "bytes of payload of a task");
  options.Add("seconds", &flags.seconds, "duration of the load");
  options.Add("backlog", &flags.backlog,
              "tasks to submit before the load, which then submits none");
  options.Add("job-tasks", &flags.job_tasks, "tasks of one job of the backlog");
  if (std::optional<int> code = options.Parse(argc, argv)) return *code;
  if (flags.coordinator.empty() || flags.data_dir.empty()) {
    fprintf(stderr, "queue_load: --coordinator and --data-dir are required\n");
    return kmosaic::kExitUsage;
  }
  nlohmann::json report = {{"verbs", flags.verbs},
                           {"clients", flags.clients},
                           {"batch", flags.batch},
                           {"payload_bytes", flags.payload},
                           {"seconds", flags.seconds}};
  absl::Status status = kmosaic::Run(flags, report);
  if (!status.ok()) {
    fprintf(stderr, "queue_load: %s\n", status.ToString().c_str());
    return 1;
  }
  printf("%s\n", report.dump().c_str());
  return 0;
}
