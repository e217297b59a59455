// kmosaic-gpu-worker: serves compile, verify and benchmark requests.
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/config/options.h"
#include "common/lifecycle/ready_line.h"
#include "common/lifecycle/shutdown.h"
#include "common/log/log.h"
#include "gpu_worker/server.h"

namespace kmosaic {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitInterrupted = 4;
constexpr char kProcess[] = "kmosaic-gpu-worker";

int Main(int argc, char** argv) {
  WorkerOptions worker;
  bool self_test = false;
  std::string log_level = "info";
  Options options(kProcess, "Compiles, verifies and measures kernels for a coordinator.");
  options.Add("coordinator", &worker.coordinator, "gRPC target of the coordinator");
  options.Add("listen", &worker.listen, "HOST:PORT for gRPC; port 0 takes a free one");
  options.Add("http-listen", &worker.http_listen, "HOST:PORT for metrics and health");
  options.Add("advertise", &worker.advertise, "HOST:PORT that runners dial; default: as bound");
  options.Add("name", &worker.name, "name of this worker in its cluster; default: made up");
  options.Add("device", &worker.device, "auto, cuda or emulated");
  options.Add("gpu", &worker.gpu,
              "which of the visible GPUs, from 0; counted round, so that workers can be numbered");
  options.Add("cache-dir", &worker.cache_dir,
              "folder for compiled artifacts; default: ~/.cache/kernelmosaic/worker");
  options.Add("python", &worker.python,
              "interpreter with torch; default: the active environment, else python3");
  options.Add("gxx", &worker.gxx, "C++ compiler; default: g++ in PATH");
  options.Add("cuda-home", &worker.cuda_home,
              "CUDA toolkit; default: CUDA_HOME, nvcc in PATH, wheels beside the interpreter");
  options.Add("compile-slots", &worker.compile_slots, "compiles at a time; 0: one per core");
  options.Add("verify-slots", &worker.verify_slots,
              "verifications at a time; 0: one per core, and per 16 GiB of GPU memory");
  options.Add("benchmark-slots", &worker.benchmark_slots,
              "benchmarks at a time on a GPU, of which one measures; 0: as verify-slots");
  options.Add("cache-mib", &worker.cache_mib, "size of the artifact cache in MiB");
  options.Add("reference-cache-mib", &worker.reference_cache_mib,
              "memory for expected outputs in MiB");
  options.Add("compile-memory-mib", &worker.compile_memory_mib, "memory of one compile in MiB");
  options.Add("memory-mib", &worker.memory_mib,
              "memory of one candidate or reference in MiB; 0: by device");
  options.Add("processes", &worker.processes, "processes and threads of one candidate");
  options.Add("tmp-mib", &worker.tmp_mib, "size of a candidate's /tmp in MiB");
  options.Add("compile-limit", &worker.compile_limit, "wall time of one compiler run");
  options.Add("load-limit", &worker.load_limit, "wall time for loading a solution");
  options.Add("run-limit", &worker.run_limit, "wall time of one call of a solution");
  options.Add("public-seeds", &worker.public_seeds, "seeds that feedback may name");
  options.Add("secret-seeds", &worker.secret_seeds, "further seeds, fresh for each evaluation");
  options.Add("nvcc-gate", &worker.nvcc_gate,
              "off, note or on: whether nvcc judges sources on the emulated device too, as a "
              "note or as COMPILE_ERROR");
  options.Add("label", &worker.labels, "NAME=VALUE, a label for placement");
  options.Add("grace", &worker.grace, "time for running requests when draining");
  options.Add("unsandboxed", &worker.unsandboxed,
              "run candidates without a sandbox; every report says so");
  options.Add("no-grants", &worker.no_grants, "serve requests without a grant; for tests only");
  options.Add("self-test", &self_test,
              "compile and run known kernels, print what this machine is as JSON, and exit");
  options.Add("log-level", &log_level, "debug, info, warning or error");
  if (std::optional<int> exit = options.Parse(argc, argv)) return *exit;
  LogLevel level = LogLevel::kInfo;
  if (!ParseLogLevel(log_level, &level)) {
    std::cerr << kProcess << ": --log-level is '" << log_level
              << "'; it is one of debug, info, warning, error\n";
    return kExitUsage;
  }
  StartLog(kProcess, level);

  // Before any thread, so that none of them takes the signals. A worker that is still starting
  // has nothing to finish: what it runs dies with it.
  Event drain;
  std::atomic<bool> started_up = false;
  ShutdownSignals signals([&drain, &started_up] {
    if (!started_up) _exit(kExitInterrupted);
    drain.Set();
  });

  if (self_test) {
    worker.no_grants = true;
    worker.coordinator.clear();
  }
  auto started = WorkerServer::Start(worker, [&drain] { drain.Set(); });
  if (!started.ok()) {
    std::string message(started.status().message());
    if (self_test) {
      std::cout << nlohmann::json{{"self_test", {{"passed", false}, {"cause", message}}}}.dump()
                << std::endl;
    }
    std::cerr << kProcess << ": " << message << "\n";
    return absl::IsInvalidArgument(started.status()) ? kExitUsage : kExitFailed;
  }
  started_up = true;
  std::unique_ptr<WorkerServer> server = *std::move(started);
  if (self_test) {
    std::cout << server->SummaryJson() << std::endl;
    return 0;
  }
  PrintReadyLine({kProcess, server->grpc_target(), server->http_address()});
  drain.Wait();
  LogInfo("draining");
  server->Drain();
  LogInfo("done");
  return 0;
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) { return kmosaic::Main(argc, argv); }
