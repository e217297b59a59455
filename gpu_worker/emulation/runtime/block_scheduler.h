// Runs the threads of one block at a time on fibers, optimistically: a fiber runs threads in a
// plain loop, and only a thread that has to wait is parked, with the fiber under it; a fresh
// fiber then goes on with the loop. A kernel without barriers never switches.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_BLOCK_SCHEDULER_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_BLOCK_SCHEDULER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu_worker/emulation/include/kmosaic_emulation/runtime_api.h"
#include "gpu_worker/emulation/runtime/fiber.h"
#include "gpu_worker/emulation/runtime/schedule.h"

namespace kmosaic::emulation {

class BlockScheduler {
 public:
  static constexpr unsigned kWarpSize = 32;

  // `report(kind, detail)` is called, on the stack of the device thread concerned, for what is
  // wrong but can be gone on from.
  using Report = std::function<void(const char* kind, const std::string& detail)>;
  explicit BlockScheduler(Report report) : report_(std::move(report)) {}

  // Prepares for a grid. `launch` and `schedule` must outlive the grid.
  void BeginGrid(const KmEmuLaunch& launch, Schedule* schedule);
  // Runs one block to its end. False when it was aborted.
  bool RunBlock(std::array<unsigned, 3> block);

  // ---- called on a device thread's stack
  bool NextThread();
  int Barrier(int kind, int predicate);
  std::uint64_t Warp(int op, unsigned mask, std::uint64_t value, int argument, int width);
  unsigned Lane() const { return current_ % kWarpSize; }
  // The running thread, counted through the block; barriers that its block, and warp
  // operations that its warp, have completed.
  unsigned Current() const { return current_; }
  std::uint32_t BarriersPassed() const { return barriers_passed_; }
  std::uint32_t WarpOperationsPassed() const { return warps_[current_ / kWarpSize].completed; }
  // A thread of the launch, counted through the block.
  std::array<unsigned, 3> IndexOf(unsigned thread) const;
  void Yield();
  // Gives up the block and goes back to RunBlock. Works inside a signal handler.
  [[noreturn]] void Abort();

  // Indices of the running thread and block; zero when none runs.
  std::array<unsigned, 3> ThreadIndex() const;
  std::array<unsigned, 3> BlockIndex() const { return block_; }
  // Does `address` lie in the guard of the running thread's stack?
  bool StackGuardHolds(const void* address) const;

  std::uint64_t barriers() const { return barriers_; }
  std::uint64_t warp_operations() const { return warp_operations_; }

 private:
  enum class State : std::uint8_t { kFresh, kRunning, kReady, kAtBarrier, kInWarp, kDone };

  struct Fiber {
    FiberStack stack;
    Context context = nullptr;
  };

  struct Thread {
    std::array<std::uint16_t, 3> index{};
    State state = State::kFresh;
    Fiber* fiber = nullptr;  // while parked
    int op = 0;              // what it waits for, and what came of it
    unsigned mask = 0;
    int argument = 0;
    int width = 0;
    std::uint64_t value = 0;
    std::uint64_t result = 0;
  };

  struct WarpState {
    unsigned alive = 0;           // lanes that exist and have not returned
    unsigned waiting = 0;         // lanes in a warp operation
    std::uint32_t completed = 0;  // operations
  };

  static constexpr unsigned kNone = ~0u;

  static void FiberEntry();

  void FinishCurrent();
  void Run(unsigned id);
  // Parks the running fiber and goes on with what comes next. Returns when it is gone on with.
  void Dispatch();
  Fiber* PickNext();
  Fiber* TakeFiber();
  void ReleaseBarrierIfComplete();
  void CompleteWarpIfPossible(unsigned warp, unsigned lane);
  void CompleteWarp(unsigned warp, unsigned members);
  std::uint64_t WarpResult(unsigned warp, unsigned members, unsigned lane);
  std::uint64_t LaneValue(unsigned warp, unsigned members, unsigned reader, unsigned source);
  // The lanes that wait for the same operation with the same mask as `lane`.
  unsigned LanesWaitingWith(unsigned warp, unsigned lane) const;
  // Lanes that ask for the active mask are answered when nothing else can go on: those that
  // have come by then run together. False when nobody asked.
  bool CompleteActiveMask();
  // Nothing can go on although threads are left: completes one warp operation without the lanes
  // that will not come.
  void BreakDeadlock();
  void MakeReady(std::vector<unsigned>* ids);

  Report report_;

  // Of the grid.
  const KmEmuLaunch* launch_ = nullptr;
  Schedule* schedule_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<WarpState> warps_;

  // Of the block.
  std::array<unsigned, 3> block_{};
  std::vector<unsigned> order_;
  std::size_t next_fresh_ = 0;
  std::deque<unsigned> ready_;
  unsigned alive_ = 0;
  unsigned at_barrier_ = 0;
  int barrier_count_ = 0;  // predicates that were true
  std::uint32_t barriers_passed_ = 0;
  std::uint64_t idle_yields_ = 0;
  bool fresh_next_ = false;  // a thread gave way to threads that have not begun
  unsigned current_ = kNone;
  bool aborted_ = false;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;
  Context main_ = nullptr;
  std::vector<unsigned> scratch_;

  std::uint64_t barriers_ = 0;
  std::uint64_t warp_operations_ = 0;
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_BLOCK_SCHEDULER_H_
