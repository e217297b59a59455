#include <algorithm>
#include <cstring>
#include <string>

#include "gpu_worker/emulation/include/kmosaic_emulation/runtime_api.h"
#include "gpu_worker/emulation/runtime/device.h"

namespace {

// One device per process, as the CUDA runtime has it: the C interface carries no handle. Never
// destroyed, because extensions may free memory while the process exits.
kmosaic::emulation::Device& TheDevice() {
  static auto* device = new kmosaic::emulation::Device;
  return *device;
}

// Outside a kernel a warp operation or barrier has nobody to meet.
bool InKernel(const char* what) {
  if (TheDevice().in_kernel()) return true;
  kmosaic_emu_unsupported(what);
  return false;
}

}  // namespace

extern "C" {

int kmosaic_emu_launch(const KmEmuLaunch* launch) { return TheDevice().Launch(*launch); }

int kmosaic_emu_next_thread(void) { return TheDevice().scheduler().NextThread() ? 1 : 0; }

int kmosaic_emu_barrier(int kind, int predicate) {
  if (!InKernel("__syncthreads outside a kernel")) return 0;
  return TheDevice().scheduler().Barrier(kind, predicate);
}

uint64_t kmosaic_emu_warp(int op, unsigned mask, uint64_t value, int argument, int width) {
  if (!InKernel("a warp operation outside a kernel")) return 0;
  return TheDevice().scheduler().Warp(op, mask, value, argument, width);
}

unsigned kmosaic_emu_lane(void) {
  return TheDevice().in_kernel() ? TheDevice().scheduler().Lane() : 0;
}

void kmosaic_emu_yield(void) {
  if (TheDevice().in_kernel()) TheDevice().scheduler().Yield();
}

void* kmosaic_emu_dynamic_shared(void) { return TheDevice().DynamicShared(); }

size_t kmosaic_emu_dynamic_shared_bytes(void) { return TheDevice().DynamicSharedBytes(); }

void* kmosaic_emu_shared(KmEmuSharedSite* site, size_t bytes, const char* name) {
  return TheDevice().Shared(site, bytes, name);
}

void kmosaic_emu_trap(const char* why) {
  if (TheDevice().in_kernel()) TheDevice().Fail("device_assert", why, KM_EMU_LAUNCH_FAILURE);
}

void kmosaic_emu_assert_failed(const char* expression, const char* file, unsigned line) {
  if (!TheDevice().in_kernel()) return;
  TheDevice().Fail("device_assert",
                   std::string("assertion failed: ") + expression + " (" + file + ":" +
                       std::to_string(line) + ")",
                   KM_EMU_ASSERT);
}

void kmosaic_emu_unsupported(const char* what) {
  if (TheDevice().in_kernel()) TheDevice().Fail("unsupported", what, KM_EMU_NOT_SUPPORTED);
  TheDevice().Report("unsupported", what);
  TheDevice().SetError(KM_EMU_NOT_SUPPORTED);
}

void kmosaic_emu_access(const void* address, size_t bytes, int is_store) {
  using Kind = kmosaic::emulation::AccessMonitor::Kind;
  TheDevice().Access(address, bytes, is_store != 0 ? Kind::kStore : Kind::kLoad);
}

void kmosaic_emu_atomic(const void* address, size_t bytes) {
  TheDevice().Access(address, bytes, kmosaic::emulation::AccessMonitor::Kind::kAtomic);
}

void kmosaic_emu_fence(void) { TheDevice().Fence(); }

void* kmosaic_emu_allocate(size_t bytes) { return TheDevice().Allocate(bytes); }

int kmosaic_emu_free(void* address) { return TheDevice().Free(address) ? 1 : 0; }

int kmosaic_emu_find(const void* address, void** start, size_t* bytes) {
  return TheDevice().Find(address, start, bytes) ? 1 : 0;
}

size_t kmosaic_emu_allocated_bytes(void) { return TheDevice().AllocatedBytes(); }

int kmosaic_emu_last_error(int clear) { return TheDevice().LastError(clear != 0); }

void kmosaic_emu_set_error(int error) { TheDevice().SetError(error); }

void kmosaic_emu_allow_dynamic_shared(size_t bytes) { TheDevice().AllowDynamicShared(bytes); }

int kmosaic_emu_in_kernel(void) { return TheDevice().in_kernel() ? 1 : 0; }

int kmosaic_emu_configure(const char* schedule, int poison, int report_fd) {
  return TheDevice().Configure(schedule, static_cast<unsigned char>(poison), report_fd) ? 0 : -1;
}

size_t kmosaic_emu_findings(char* buffer, size_t size) {
  const std::string text = TheDevice().FindingsAsJson();
  if (size > 0) {
    const size_t copied = std::min(size - 1, text.size());
    std::memcpy(buffer, text.data(), copied);
    buffer[copied] = '\0';
  }
  return text.size();
}

void kmosaic_emu_clear_findings(void) { TheDevice().ClearFindings(); }

void kmosaic_emu_counters(KmEmuCounters* counters) { *counters = TheDevice().counters(); }

void kmosaic_emu_reset_counters(void) { TheDevice().ResetCounters(); }

}  // extern "C"
