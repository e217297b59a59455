// C interface of the emulation runtime. Two kinds of callers: code compiled from a candidate's
// CUDA source (through the headers in include/kmosaic_emulation and the archive made from
// support/), and the Python harness (through ctypes). Plain C types only, so that the shared
// library needs no CUDA header and a change of toolkit never changes this interface.
//
// The runtime is ONE shared library per process (libkmosaic_emulation_runtime.so). Every emulated
// extension links to it by soname; nothing in it carries a name of the CUDA runtime, so the real
// libcudart that a CUDA build of torch brings along cannot clash with it. The cudaXxx entry points
// live in the support archive, which is linked into each extension with hidden symbols.
//
// Threads: one host thread at a time may launch or synchronise; a lock serialises the rest. The
// device code of a launch runs on the calling thread, inside fibers.
#ifndef KMOSAIC_EMULATION_RUNTIME_API_H_
#define KMOSAIC_EMULATION_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

// Error numbers are those of cudaError_t.
enum KmEmuError {
  KM_EMU_SUCCESS = 0,
  KM_EMU_INVALID_VALUE = 1,
  KM_EMU_OUT_OF_MEMORY = 2,
  KM_EMU_INVALID_CONFIGURATION = 9,
  KM_EMU_ILLEGAL_ADDRESS = 700,
  KM_EMU_LAUNCH_OUT_OF_RESOURCES = 701,
  KM_EMU_ASSERT = 710,
  KM_EMU_MISALIGNED_ADDRESS = 716,
  KM_EMU_LAUNCH_FAILURE = 719,
  KM_EMU_NOT_SUPPORTED = 801,
};

// The built-in variables of one extension; the scheduler writes them before a thread goes on.
// Each points to three consecutive unsigned integers.
struct KmEmuVariables {
  unsigned* thread_index;
  unsigned* block_index;
  unsigned* block_dim;
  unsigned* grid_dim;
  // Number of blocks begun so far (never 0 inside a kernel): tells a shared variable that it
  // belongs to an earlier block.
  uint64_t* block_serial;
};

struct KmEmuLaunch {
  unsigned grid[3];
  unsigned block[3];
  size_t dynamic_shared_bytes;
  const char* kernel;                        // for reports
  void (*body)(const void* context);         // runs threads while kmosaic_emu_next_thread() is true
  const void* context;                       // the kernel's arguments; read-only
  const struct KmEmuVariables* variables;
};

// Runs the whole grid. Returns 0, or an error that is also remembered for
// kmosaic_emu_last_error. An error inside device code (illegal address, assert) is sticky, as on
// a device: every later launch returns it.
int kmosaic_emu_launch(const struct KmEmuLaunch* launch);

// ---- called by device code
int kmosaic_emu_next_thread(void);
enum KmEmuBarrier { KM_BARRIER_PLAIN, KM_BARRIER_COUNT, KM_BARRIER_AND, KM_BARRIER_OR };
int kmosaic_emu_barrier(int kind, int predicate);
enum KmEmuWarpOp {
  KM_WARP_SYNC,
  KM_WARP_SHUFFLE_INDEX,
  KM_WARP_SHUFFLE_UP,
  KM_WARP_SHUFFLE_DOWN,
  KM_WARP_SHUFFLE_XOR,
  KM_WARP_BALLOT,  // lower half: the votes; upper half: who took part
  KM_WARP_ACTIVE,  // the lanes that run together; mask must be all lanes
  KM_WARP_MATCH_ANY,
  KM_WARP_MATCH_ALL,
  KM_WARP_ADD,
  KM_WARP_MIN_SIGNED,
  KM_WARP_MAX_SIGNED,
  KM_WARP_MIN_UNSIGNED,
  KM_WARP_MAX_UNSIGNED,
  KM_WARP_AND,
  KM_WARP_OR,
  KM_WARP_XOR,
};
// The rendezvous of the lanes in `mask`. argument: the source lane or the delta; width: a power
// of two up to 32.
uint64_t kmosaic_emu_warp(int op, unsigned mask, uint64_t value, int argument, int width);
unsigned kmosaic_emu_lane(void);
// Gives the other threads of the block a turn (spin locks, __nanosleep).
void kmosaic_emu_yield(void);
void* kmosaic_emu_dynamic_shared(void);
size_t kmosaic_emu_dynamic_shared_bytes(void);
// A static __shared__ variable: `site` is its own record, zero at start. Returns the variable's
// address in memory that ends at a guard page; poisoned when it is first reached in a block.
struct KmEmuSharedSite {
  void* address;
  uint64_t block_serial;
};
void* kmosaic_emu_shared(struct KmEmuSharedSite* site, size_t bytes, const char* name);
// Never return when called inside a kernel: the launch fails. Outside a kernel
// kmosaic_emu_assert_failed returns.
void kmosaic_emu_trap(const char* why);
void kmosaic_emu_assert_failed(const char* expression, const char* file, unsigned line);
void kmosaic_emu_unsupported(const char* what);

// ---- the instrumented build (loads and stores counted): called before each access
void kmosaic_emu_access(const void* address, size_t bytes, int is_store);
void kmosaic_emu_atomic(const void* address, size_t bytes);
void kmosaic_emu_fence(void);

// ---- device memory
// Poisoned memory that ends at a guard page (start aligned to 16 bytes), or NULL.
void* kmosaic_emu_allocate(size_t bytes);
// 0 when `address` is not the start of a live allocation.
int kmosaic_emu_free(void* address);
// 1 when `address` lies inside a live allocation; start and size are stored when not NULL.
int kmosaic_emu_find(const void* address, void** start, size_t* bytes);
// Bytes of live allocations.
size_t kmosaic_emu_allocated_bytes(void);

// ---- errors
int kmosaic_emu_last_error(int clear);
void kmosaic_emu_set_error(int error);
void kmosaic_emu_allow_dynamic_shared(size_t bytes);
int kmosaic_emu_in_kernel(void);

// ---- harness
// schedule: "forward", "reverse", "random:SEED" or "ablated" (launches are checked and counted, no
// kernel runs). poison: the byte that memory without content holds. report_fd: findings are
// appended there, one JSON object a line, as they are made; -1 for none. Forgets findings, counters
// and errors. Returns 0, or -1 for a schedule that is none.
int kmosaic_emu_configure(const char* schedule, int poison, int report_fd);
// Copies the findings so far, a JSON array, into buffer (always 0-terminated when size > 0) and
// returns the length that the whole text has.
size_t kmosaic_emu_findings(char* buffer, size_t size);
void kmosaic_emu_clear_findings(void);

struct KmEmuCounters {
  uint64_t launches, blocks, threads, barriers, warp_operations;
  // Only the instrumented build counts these; 0 otherwise, with `instrumented` 0.
  uint64_t instrumented;
  uint64_t global_loads, global_load_bytes, global_stores, global_store_bytes;
  uint64_t shared_loads, shared_load_bytes, shared_stores, shared_store_bytes;
  uint64_t other_accesses;
  // Not among the loads and stores.
  uint64_t atomics;
};
void kmosaic_emu_counters(struct KmEmuCounters* counters);
void kmosaic_emu_reset_counters(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif  // KMOSAIC_EMULATION_RUNTIME_API_H_
