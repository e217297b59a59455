// The emulated device: launches grids, holds memory, findings and counters.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_DEVICE_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_DEVICE_H_

#include <signal.h>

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "gpu_worker/emulation/include/kmosaic_emulation/runtime_api.h"
#include "gpu_worker/emulation/runtime/access_monitor.h"
#include "gpu_worker/emulation/runtime/block_scheduler.h"
#include "gpu_worker/emulation/runtime/device_memory.h"
#include "gpu_worker/emulation/runtime/findings.h"
#include "gpu_worker/emulation/runtime/schedule.h"

namespace kmosaic::emulation {

// Limits of compute capability 9.0 (CUDA programming guide, "Technical Specifications").
inline constexpr unsigned kMaxThreadsPerBlock = 1024;
inline constexpr std::array<unsigned, 3> kMaxBlockDim = {1024, 1024, 64};
inline constexpr std::array<unsigned, 3> kMaxGridDim = {2147483647u, 65535, 65535};
inline constexpr std::size_t kSharedBytesWithoutOptIn = 48 * 1024;
inline constexpr std::size_t kSharedBytesWithOptIn = 227 * 1024;

class Device {
 public:
  Device();

  // Host side: serialised by a lock that a launch holds to its end.
  bool Configure(std::string_view schedule, unsigned char poison, int report_fd);
  int Launch(const KmEmuLaunch& launch);
  void* Allocate(std::size_t bytes);
  bool Free(void* address);
  bool Find(const void* address, void** start, std::size_t* bytes);
  std::size_t AllocatedBytes();
  std::string FindingsAsJson();
  void ClearFindings();
  int LastError(bool clear);
  void SetError(int error);
  void AllowDynamicShared(std::size_t bytes);
  KmEmuCounters counters() const { return counters_; }
  void ResetCounters() { counters_ = {}; }

  // Device side: only inside a launch, on a device thread's stack.
  bool in_kernel() const { return in_kernel_; }
  BlockScheduler& scheduler() { return scheduler_; }
  void* Shared(KmEmuSharedSite* site, std::size_t bytes, const char* name);
  void* DynamicShared() const { return dynamic_shared_.start(); }
  std::size_t DynamicSharedBytes() const { return dynamic_shared_.bytes(); }
  void Access(const void* address, std::size_t bytes, AccessMonitor::Kind kind);
  void Fence();
  // Records the finding; the launch fails with `error`.
  [[noreturn]] void Fail(const char* kind, const std::string& detail, int error);
  void Report(const char* kind, const std::string& detail);
  void OnFault(int signal, const siginfo_t& info);

 private:
  struct SharedVariable {
    GuardedRegion region;
    std::string name;  // "shared variable tile"
  };

  int CheckLaunch(const KmEmuLaunch& launch);
  int RunGrid(const KmEmuLaunch& launch);
  void ReportStrayWrites();
  void CountAccess(bool is_shared, bool is_store, std::size_t bytes);
  AccessMonitor::Actor Actor() const;
  void ReportAccess(const char* kind, const AccessMonitor::Actor& actor, const std::string& detail);

  std::mutex host_mutex_;  // not held by device code, which runs inside a launch
  DeviceMemory memory_;
  Findings findings_;
  Schedule schedule_;
  unsigned char poison_ = 0xff;
  int last_error_ = KM_EMU_SUCCESS;
  bool sticky_ = false;
  std::size_t dynamic_shared_allowed_ = kSharedBytesWithoutOptIn;
  KmEmuCounters counters_{};

  BlockScheduler scheduler_;
  const KmEmuLaunch* launch_ = nullptr;
  int kernel_error_ = KM_EMU_SUCCESS;
  bool in_kernel_ = false;
  std::uint64_t block_serial_ = 0;
  GuardedRegion dynamic_shared_;
  std::map<KmEmuSharedSite*, SharedVariable> shared_;
  std::size_t shared_bytes_in_block_ = 0;
  // Of the instrumented build: the range that the last access fell into.
  AccessMonitor::Place last_range_;
  AccessMonitor monitor_;
  std::uint32_t block_linear_ = 0;
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_DEVICE_H_
