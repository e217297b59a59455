// A GPU worker, put together.
#ifndef KMOSAIC_GPU_WORKER_SERVER_H_
#define KMOSAIC_GPU_WORKER_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kmosaic {

struct WorkerOptions {
  // gRPC target; empty: serve without a coordinator (only with no_grants or self_test).
  std::string coordinator;
  std::string listen = "127.0.0.1:0";
  std::string http_listen = "127.0.0.1:0";
  // What others dial; empty: the address that was bound.
  std::string advertise;
  // Empty: made up.
  std::string name;
  std::string device = "auto";
  // Among the visible ones, counted round.
  int64_t gpu = 0;
  std::string cache_dir;
  std::string python;
  std::string gxx;
  std::string cuda_home;
  int64_t compile_slots = 0;
  // 0: one per core, on a GPU no more than one per 16 GiB of its memory.
  int64_t verify_slots = 0;
  // Offered on a GPU only. One measures at a time; what comes before and after it (compile,
  // verify, compare) goes on beside. 0: as many as verify_slots.
  int64_t benchmark_slots = 0;
  int64_t cache_mib = 4096;
  int64_t reference_cache_mib = 512;
  int64_t compile_memory_mib = 4096;
  // 0: 4 GiB on the emulated device; on a GPU half of this machine's memory, since inputs of
  // gigabytes pass through it.
  int64_t memory_mib = 0;
  int64_t processes = 128;
  int64_t tmp_mib = 256;
  absl::Duration compile_limit = absl::Minutes(2);
  absl::Duration load_limit = absl::Seconds(60);
  absl::Duration run_limit = absl::Seconds(60);
  int64_t public_seeds = 2;
  int64_t secret_seeds = 5;
  // off, note, on: whether nvcc judges sources on the emulated device too.
  std::string nvcc_gate = "off";
  std::map<std::string, std::string> labels;
  bool unsandboxed = false;
  bool no_grants = false;
  bool no_self_test = false;
  // How long running requests may take when draining.
  absl::Duration grace = absl::Minutes(10);
};

// A value: works while it lives.
class WorkerServer {
 public:
  // Finds toolchain and device, starts the sandbox and the zygote, runs the self-test,
  // serves, registers. A status names the part that failed, its cause and what to do;
  // then nothing was registered. `on_end` is called, on a thread of the worker and maybe more
  // than once, when the coordinator has drained it and it has nothing left to do.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(
      const WorkerOptions& options, std::function<void()> on_end = [] {});
  virtual ~WorkerServer() = default;

  virtual std::string grpc_target() const = 0;
  virtual std::string http_address() const = 0;
  // One JSON object about this worker: device, toolchain, torch, sandbox, self-test.
  virtual std::string SummaryJson() const = 0;
  // Takes no more work from the coordinator, waits until running requests have ended (at
  // most the grace time), and tells the coordinator so.
  virtual void Drain() = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_SERVER_H_
