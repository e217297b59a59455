#include "gpu_worker/emulation/runtime/block_scheduler.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

namespace kmosaic::emulation {

namespace {

// When threads yield this often while none ends, begins or leaves a barrier, they wait for
// another block, or for nothing.
constexpr std::uint64_t kMaxIdleYields = 2'000'000;

// The scheduler whose fibers run; a fiber's entry has no argument.
BlockScheduler* active_scheduler = nullptr;

const char* OpName(int op) {
  switch (op) {
    case KM_WARP_SYNC:
      return "__syncwarp";
    case KM_WARP_SHUFFLE_INDEX:
      return "__shfl_sync";
    case KM_WARP_SHUFFLE_UP:
      return "__shfl_up_sync";
    case KM_WARP_SHUFFLE_DOWN:
      return "__shfl_down_sync";
    case KM_WARP_SHUFFLE_XOR:
      return "__shfl_xor_sync";
    case KM_WARP_BALLOT:
      return "__ballot_sync/__any_sync/__all_sync";
    case KM_WARP_MATCH_ANY:
    case KM_WARP_MATCH_ALL:
      return "__match_sync";
    default:
      return "__reduce_sync";
  }
}

std::string Hex(unsigned value) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", value);
  return text;
}

}  // namespace

void BlockScheduler::BeginGrid(const KmEmuLaunch& launch, Schedule* schedule) {
  launch_ = &launch;
  schedule_ = schedule;
  const unsigned count = launch.block[0] * launch.block[1] * launch.block[2];
  threads_.assign(count, Thread{});
  unsigned id = 0;
  for (unsigned z = 0; z < launch.block[2]; ++z) {
    for (unsigned y = 0; y < launch.block[1]; ++y) {
      for (unsigned x = 0; x < launch.block[0]; ++x) {
        threads_[id++].index = {static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(y),
                                static_cast<std::uint16_t>(z)};
      }
    }
  }
  warps_.assign((count + kWarpSize - 1) / kWarpSize, WarpState{});
  order_.resize(count);
  // Idle fibers still stand inside the former grid's kernel.
  idle_.clear();
  for (const auto& fiber : fibers_) {
    fiber->context = fiber->stack.PrepareContext(&BlockScheduler::FiberEntry);
    idle_.push_back(fiber.get());
  }
  barriers_ = 0;
  warp_operations_ = 0;
}

bool BlockScheduler::RunBlock(std::array<unsigned, 3> block) {
  block_ = block;
  alive_ = static_cast<unsigned>(threads_.size());
  for (Thread& thread : threads_) thread.state = State::kFresh;
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(kWarpSize, alive_ - w * kWarpSize);
    warps_[w] = {lanes == kWarpSize ? ~0u : (1u << lanes) - 1, 0, 0};
  }
  schedule_->OrderThreads(&order_);
  next_fresh_ = 0;
  ready_.clear();
  at_barrier_ = 0;
  barrier_count_ = 0;
  barriers_passed_ = 0;
  idle_yields_ = 0;
  fresh_next_ = false;
  current_ = kNone;
  aborted_ = false;
  active_scheduler = this;
  running_ = TakeFiber();
  if (running_ == nullptr) return false;
  SwitchContext(&main_, running_->context);
  running_ = nullptr;
  current_ = kNone;
  return !aborted_;
}

void BlockScheduler::FiberEntry() {
  for (;;) {
    BlockScheduler& self = *active_scheduler;
    self.launch_->body(self.launch_->context);
    self.idle_.push_back(self.running_);
    self.Dispatch();
  }
}

bool BlockScheduler::NextThread() {
  if (current_ != kNone) FinishCurrent();
  while (next_fresh_ < order_.size()) {
    if (ready_.empty() || fresh_next_ || !schedule_->ResumeFirst()) {
      fresh_next_ = false;
      idle_yields_ = 0;
      Run(order_[next_fresh_++]);
      return true;
    }
    idle_.push_back(running_);
    Dispatch();
  }
  return false;
}

void BlockScheduler::FinishCurrent() {
  const unsigned id = current_;
  current_ = kNone;
  threads_[id].state = State::kDone;
  idle_yields_ = 0;
  --alive_;
  const unsigned w = id / kWarpSize;
  WarpState& warp = warps_[w];
  warp.alive &= ~(1u << (id % kWarpSize));
  if (warp.waiting != 0) {
    // Somebody may have waited for this lane alone.
    for (unsigned waiting = warp.waiting; waiting != 0; waiting &= waiting - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(waiting));
      if ((warp.waiting >> lane & 1) != 0) CompleteWarpIfPossible(w, lane);
    }
  }
  ReleaseBarrierIfComplete();
}

void BlockScheduler::Run(unsigned id) {
  current_ = id;
  Thread& thread = threads_[id];
  thread.state = State::kRunning;
  unsigned* out = launch_->variables->thread_index;
  out[0] = thread.index[0];
  out[1] = thread.index[1];
  out[2] = thread.index[2];
}

BlockScheduler::Fiber* BlockScheduler::TakeFiber() {
  if (!idle_.empty()) {
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }
  auto fiber = std::make_unique<Fiber>();
  if (!fiber->stack.Allocate()) return nullptr;
  fiber->context = fiber->stack.PrepareContext(&BlockScheduler::FiberEntry);
  fibers_.push_back(std::move(fiber));
  return fibers_.back().get();
}

BlockScheduler::Fiber* BlockScheduler::PickNext() {
  for (;;) {
    const bool fresh = next_fresh_ < order_.size();
    if (!ready_.empty() && (!fresh || (!fresh_next_ && schedule_->ResumeFirst()))) {
      const unsigned id = ready_.front();
      ready_.pop_front();
      Run(id);
      return threads_[id].fiber;
    }
    if (fresh) {
      current_ = kNone;
      Fiber* fiber = TakeFiber();
      if (fiber == nullptr) {
        report_("unsupported", "the system gives no memory for another device thread's stack");
        Abort();
      }
      return fiber;
    }
    if (alive_ == 0) return nullptr;
    if (!CompleteActiveMask()) BreakDeadlock();
  }
}

void BlockScheduler::Dispatch() {
  Fiber* from = running_;
  Fiber* next = PickNext();
  if (next == from) return;
  running_ = next;
  SwitchContext(&from->context, next == nullptr ? main_ : next->context);
}

void BlockScheduler::MakeReady(std::vector<unsigned>* ids) {
  idle_yields_ = 0;
  schedule_->OrderReleased(ids);
  for (const unsigned id : *ids) {
    threads_[id].state = State::kReady;
    ready_.push_back(id);
  }
}

std::array<unsigned, 3> BlockScheduler::IndexOf(unsigned thread) const {
  const auto& index = threads_[thread].index;
  return {index[0], index[1], index[2]};
}

int BlockScheduler::Barrier(int kind, int predicate) {
  ++barriers_;
  const unsigned id = current_;
  Thread& thread = threads_[id];
  thread.state = State::kAtBarrier;
  thread.fiber = running_;
  thread.op = kind;
  ++at_barrier_;
  if (predicate != 0) ++barrier_count_;
  ReleaseBarrierIfComplete();
  Dispatch();
  return static_cast<int>(thread.result);
}

void BlockScheduler::ReleaseBarrierIfComplete() {
  if (at_barrier_ == 0 || at_barrier_ != alive_) return;
  scratch_.clear();
  for (unsigned id = 0; id < threads_.size(); ++id) {
    Thread& thread = threads_[id];
    if (thread.state != State::kAtBarrier) continue;
    switch (thread.op) {
      case KM_BARRIER_COUNT:
        thread.result = static_cast<std::uint64_t>(barrier_count_);
        break;
      case KM_BARRIER_AND:
        thread.result = barrier_count_ == static_cast<int>(at_barrier_) ? 1 : 0;
        break;
      case KM_BARRIER_OR:
        thread.result = barrier_count_ != 0 ? 1 : 0;
        break;
      default:
        break;
    }
    scratch_.push_back(id);
  }
  at_barrier_ = 0;
  barrier_count_ = 0;
  ++barriers_passed_;
  MakeReady(&scratch_);
}

std::uint64_t BlockScheduler::Warp(int op, unsigned mask, std::uint64_t value, int argument,
                                   int width) {
  ++warp_operations_;
  const unsigned id = current_;
  const unsigned lane = id % kWarpSize;
  if ((mask >> lane & 1) == 0) {
    report_("divergent_shuffle", std::string(OpName(op)) + " with mask " + Hex(mask) +
                                     " is called by lane " + std::to_string(lane) +
                                     ", which is not in the mask");
    mask |= 1u << lane;
  }
  if (width <= 0 || width > static_cast<int>(kWarpSize) ||
      !std::has_single_bit(static_cast<unsigned>(width))) {
    width = static_cast<int>(kWarpSize);
  }
  Thread& thread = threads_[id];
  thread.state = State::kInWarp;
  thread.fiber = running_;
  thread.op = op;
  thread.mask = mask;
  thread.value = value;
  thread.argument = argument;
  thread.width = width;
  warps_[id / kWarpSize].waiting |= 1u << lane;
  CompleteWarpIfPossible(id / kWarpSize, lane);
  Dispatch();
  return thread.result;
}

void BlockScheduler::CompleteWarpIfPossible(unsigned w, unsigned lane) {
  const unsigned members = LanesWaitingWith(w, lane);
  const unsigned needed = threads_[w * kWarpSize + lane].mask & warps_[w].alive;
  if ((needed & ~members) == 0) CompleteWarp(w, members);
}

void BlockScheduler::CompleteWarp(unsigned w, unsigned members) {
  scratch_.clear();
  for (unsigned left = members; left != 0; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    Thread& thread = threads_[w * kWarpSize + lane];
    thread.result = WarpResult(w, members, lane);
    scratch_.push_back(w * kWarpSize + lane);
  }
  warps_[w].waiting &= ~members;
  ++warps_[w].completed;
  MakeReady(&scratch_);
}

std::uint64_t BlockScheduler::LaneValue(unsigned w, unsigned members, unsigned reader,
                                        unsigned source) {
  if ((members >> source & 1) != 0) return threads_[w * kWarpSize + source].value;
  // Undefined by the programming guide; an H200 reads 0.
  const Thread& thread = threads_[w * kWarpSize + reader];
  const bool exists = (warps_[w].alive >> source & 1) != 0;
  const unsigned running = std::exchange(current_, w * kWarpSize + reader);
  report_("divergent_shuffle", std::string(OpName(thread.op)) + " with mask " + Hex(thread.mask) +
                                   " reads a lane that " +
                                   (exists ? "does not take part" : "has returned or never was") +
                                   "; its value is undefined (0 here)");
  current_ = running;
  return 0;
}

std::uint64_t BlockScheduler::WarpResult(unsigned w, unsigned members, unsigned lane) {
  const Thread& thread = threads_[w * kWarpSize + lane];
  const auto width = static_cast<unsigned>(thread.width);
  const unsigned segment = lane & ~(width - 1);
  const auto argument = static_cast<unsigned>(thread.argument);
  const auto fold = [&](auto combine) {
    std::uint64_t all = thread.value;
    for (unsigned left = members & ~(1u << lane); left != 0; left &= left - 1) {
      all = combine(all,
                    threads_[w * kWarpSize + static_cast<unsigned>(std::countr_zero(left))].value);
    }
    return all;
  };
  const auto as_signed = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  switch (thread.op) {
    case KM_WARP_SHUFFLE_INDEX:
      return LaneValue(w, members, lane, segment | (argument & (width - 1)));
    case KM_WARP_SHUFFLE_UP:
      return lane - segment < argument ? thread.value
                                       : LaneValue(w, members, lane, lane - argument);
    case KM_WARP_SHUFFLE_DOWN:
      return argument >= width - (lane - segment) ? thread.value
                                                  : LaneValue(w, members, lane, lane + argument);
    case KM_WARP_SHUFFLE_XOR: {
      const unsigned source = (lane ^ argument) & (kWarpSize - 1);
      // Later segments cannot be read, earlier ones can.
      return source >= segment + width ? thread.value : LaneValue(w, members, lane, source);
    }
    case KM_WARP_BALLOT: {
      std::uint64_t votes = 0;
      for (unsigned left = members; left != 0; left &= left - 1) {
        const unsigned other = static_cast<unsigned>(std::countr_zero(left));
        if (threads_[w * kWarpSize + other].value != 0) votes |= std::uint64_t{1} << other;
      }
      // Who took part rides in the upper half; __all_sync needs it.
      return votes | static_cast<std::uint64_t>(members) << 32;
    }
    case KM_WARP_MATCH_ANY:
    case KM_WARP_MATCH_ALL: {
      std::uint64_t same = 0;
      for (unsigned left = members; left != 0; left &= left - 1) {
        const unsigned other = static_cast<unsigned>(std::countr_zero(left));
        if (threads_[w * kWarpSize + other].value == thread.value)
          same |= std::uint64_t{1} << other;
      }
      if (thread.op == KM_WARP_MATCH_ALL && same != members) return 0;
      return same;
    }
    case KM_WARP_ACTIVE:
      return members;
    case KM_WARP_ADD:
      return fold([](std::uint64_t a, std::uint64_t b) { return a + b; });
    case KM_WARP_MIN_SIGNED:
      return fold(
          [&](std::uint64_t a, std::uint64_t b) { return as_signed(a) < as_signed(b) ? a : b; });
    case KM_WARP_MAX_SIGNED:
      return fold(
          [&](std::uint64_t a, std::uint64_t b) { return as_signed(a) > as_signed(b) ? a : b; });
    case KM_WARP_MIN_UNSIGNED:
      return fold([](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; });
    case KM_WARP_MAX_UNSIGNED:
      return fold([](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; });
    case KM_WARP_AND:
      return fold([](std::uint64_t a, std::uint64_t b) { return a & b; });
    case KM_WARP_OR:
      return fold([](std::uint64_t a, std::uint64_t b) { return a | b; });
    case KM_WARP_XOR:
      return fold([](std::uint64_t a, std::uint64_t b) { return a ^ b; });
    default:
      return 0;
  }
}

unsigned BlockScheduler::LanesWaitingWith(unsigned w, unsigned lane) const {
  const Thread& first = threads_[w * kWarpSize + lane];
  unsigned members = 0;
  for (unsigned waiting = warps_[w].waiting; waiting != 0; waiting &= waiting - 1) {
    const unsigned other = static_cast<unsigned>(std::countr_zero(waiting));
    const Thread& thread = threads_[w * kWarpSize + other];
    if (thread.op == first.op && thread.mask == first.mask) members |= 1u << other;
  }
  return members;
}

bool BlockScheduler::CompleteActiveMask() {
  for (unsigned w = 0; w < warps_.size(); ++w) {
    for (unsigned waiting = warps_[w].waiting; waiting != 0; waiting &= waiting - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(waiting));
      if (threads_[w * kWarpSize + lane].op != KM_WARP_ACTIVE) continue;
      CompleteWarp(w, LanesWaitingWith(w, lane));
      return true;
    }
  }
  return false;
}

void BlockScheduler::BreakDeadlock() {
  for (unsigned w = 0; w < warps_.size(); ++w) {
    if (warps_[w].waiting == 0) continue;
    const unsigned lane = static_cast<unsigned>(std::countr_zero(warps_[w].waiting));
    const Thread& first = threads_[w * kWarpSize + lane];
    const unsigned members = LanesWaitingWith(w, lane);
    const unsigned missing = first.mask & warps_[w].alive & ~members;
    unsigned barrier_lanes = 0;
    for (unsigned left = missing; left != 0; left &= left - 1) {
      const unsigned other = static_cast<unsigned>(std::countr_zero(left));
      if (threads_[w * kWarpSize + other].state == State::kAtBarrier) barrier_lanes |= 1u << other;
    }
    current_ = w * kWarpSize + lane;  // for the report
    if (first.op < KM_WARP_SHUFFLE_INDEX || first.op > KM_WARP_SHUFFLE_XOR) {
      report_(first.op == KM_WARP_SYNC ? "deadlock" : "divergent_shuffle",
              std::string(OpName(first.op)) + " with mask " + Hex(first.mask) +
                  " is reached by lanes " + Hex(members) + " only; lanes " + Hex(missing) +
                  (barrier_lanes == missing ? " wait in __syncthreads" : " wait elsewhere"));
    }
    // A shuffle is reported when a lane that does not take part is read.
    CompleteWarp(w, members);
    current_ = kNone;
    return;
  }
  report_("deadlock", "no thread of the block can go on");
  Abort();
}

void BlockScheduler::Yield() {
  if (++idle_yields_ >= kMaxIdleYields) {
    report_("deadlock",
            "the thread spins while no thread of its block gets any further; blocks run one after "
            "another here, so it may wait for another block");
    Abort();
  }
  if (next_fresh_ < order_.size()) {
    // Whoever it waits for may not have begun.
    fresh_next_ = true;
  } else if (ready_.empty()) {
    return;
  }
  const unsigned id = current_;
  threads_[id].state = State::kReady;
  threads_[id].fiber = running_;
  ready_.push_back(id);
  Dispatch();
}

void BlockScheduler::Abort() {
  aborted_ = true;
  running_ = nullptr;
  JumpToContext(main_);
}

std::array<unsigned, 3> BlockScheduler::ThreadIndex() const {
  if (current_ == kNone) return {};
  const auto& index = threads_[current_].index;
  return {index[0], index[1], index[2]};
}

bool BlockScheduler::StackGuardHolds(const void* address) const {
  return running_ != nullptr && running_->stack.GuardHolds(address);
}

}  // namespace kmosaic::emulation
