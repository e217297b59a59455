// Looks at each load, store and atomic of a launch for two accesses of one place that nothing
// orders, and for shared memory that is read before anything wrote it.
//
// Careful rather than complete: what is reported is a fault, not all faults are. Two accesses
// are ordered by a barrier of their block, a warp operation of their warp, or atomics and fences
// that both sides did. Only the last store and the last load of a place are known. Not reported:
// stores that do not change the value, plain loads beside atomics (loops of atomicCAS begin so),
// loads and stores of one warp that only its lock step could order.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_ACCESS_MONITOR_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_ACCESS_MONITOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kmosaic::emulation {

class AccessMonitor {
 public:
  enum class Kind : std::uint8_t { kLoad, kStore, kAtomic };

  // The device thread that does something.
  struct Actor {
    std::uint32_t block = 0;   // linear, in the grid
    std::uint32_t thread = 0;  // linear, in the block
    // Barriers that its block, and warp operations that its warp, have come through.
    std::uint32_t barriers = 0;
    std::uint32_t warp_operations = 0;
  };

  // A place's memory; `name` in words ("a tensor", "shared variable tile").
  struct Place {
    char* start = nullptr;
    std::size_t bytes = 0;
    bool is_shared = false;
    const std::string* name = nullptr;
  };

  // `report(kind, actor, detail)`: "race" or "uninitialised_shared".
  using Report =
      std::function<void(const char* kind, const Actor& actor, const std::string& detail)>;
  // A store that the compiler announced as a load alone: it leaves out the second of two checks
  // of one address, so that x[i] += 1 is one load. It shows by the changed value.
  using HiddenStore = std::function<void(const Place& place, std::size_t bytes)>;
  AccessMonitor(Report report, HiddenStore hidden_store)
      : report_(std::move(report)), hidden_store_(std::move(hidden_store)) {}

  void BeginGrid(std::uint64_t blocks, unsigned threads_per_block, const std::string& kernel);
  void BeginBlock();
  void EndGrid();
  // Forgets what was reported of which kernel.
  void Reset() { reported_.clear(); }

  // Called before the access happens; `address` lies in `place`.
  void Access(const Place& place, const char* address, std::size_t bytes, Kind kind,
              const Actor& actor);
  // An atomic or a fence: what the thread did before it is in order for whoever comes by one
  // after it.
  void Synchronise(const Actor& actor, bool is_fence);

 private:
  static constexpr std::size_t kGranule = 4;
  // Of one launch: beyond this nothing is looked at, which bounds time and memory.
  static constexpr std::uint64_t kMaxAccesses = 1 << 25;
  static constexpr std::size_t kMaxGranules = 1 << 22;

  struct Trace {
    std::uint64_t serial = 0;  // of the grid (global) or block (shared); others mean nothing
    std::uint64_t clock = 0;
    Actor actor;
    std::uint8_t bytes = 0;  // bit per byte of the granule
    bool atomic = false;
  };
  struct Granule {
    Trace store;
    Trace load;
    std::uint8_t written = 0;  // bytes, since store.serial began
  };
  struct Shadow {
    std::vector<Granule> granules;
    std::size_t bytes = 0;
  };
  // A store that conflicts if it changes the value.
  struct Pending {
    const char* address = nullptr;
    std::size_t bytes = 0;
    std::array<unsigned char, kGranule> before{};
    Actor actor;
    std::string detail;
  };
  // A load that a hidden store may follow.
  struct Loaded {
    Place place;
    const char* address = nullptr;
    std::size_t bytes = 0;  // 0: none
    std::array<unsigned char, 16> before{};
  };
  static constexpr std::size_t kRecentLoads = 8;

  Shadow* Find(const Place& place);
  bool Ordered(const Trace& before, const Actor& now) const;
  static bool SameWarp(const Trace& before, const Actor& now) {
    return before.actor.block == now.block && before.actor.thread / 32 == now.thread / 32;
  }
  void Resolve();
  // All that waits for what comes next.
  void Settle();
  void ResolveLoads(const Actor& next);
  void Look(const Place& place, const char* address, std::size_t bytes, Kind kind,
            const Actor& actor, bool changed);
  void ReportOnce(const char* kind, const Actor& actor, const std::string& detail);
  std::string Words(const Place& place, std::size_t granule, const Trace& before, const char* what,
                    const char* now) const;

  Report report_;
  HiddenStore hidden_store_;
  std::array<Loaded, kRecentLoads> loaded_;
  std::size_t next_loaded_ = 0;
  Actor loader_;
  std::set<std::string> reported_;  // kind and kernel
  std::string kernel_;
  std::uint64_t accesses_ = 0;
  std::uint64_t grid_serial_ = 0;
  std::uint64_t block_serial_ = 0;
  std::uint64_t clock_ = 1;  // of synchronising operations
  std::vector<std::uint64_t> block_clock_;
  std::vector<std::uint8_t> block_fenced_;
  std::vector<std::uint64_t> thread_clock_;
  std::map<const char*, Shadow> shadows_;
  std::size_t granules_ = 0;
  const char* last_start_ = nullptr;
  Shadow* last_shadow_ = nullptr;
  std::vector<Pending> pending_;
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_ACCESS_MONITOR_H_
