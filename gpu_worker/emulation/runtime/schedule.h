// The order in which blocks and threads are begun, and in which waiting threads go on. A right
// kernel gives the same result under every schedule.
#ifndef KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_SCHEDULE_H_
#define KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace kmosaic::emulation {

class Schedule {
 public:
  enum class Order { kForward, kReverse, kRandom };

  Schedule() = default;
  // "forward", "reverse", "random:SEED" (decimal, up to 2^64-1) or "ablated"; nullopt for
  // anything else.
  static std::optional<Schedule> Parse(std::string_view text);

  Order order() const { return order_; }
  // No kernel runs: launches are checked and counted, and have no effect.
  bool ablated() const { return ablated_; }
  // Starts a grid of `blocks` blocks; BlockAt(0..blocks-1) then names each block once.
  void BeginGrid(std::uint64_t blocks);
  std::uint64_t BlockAt(std::uint64_t position) const;
  // Fills `order` with the order for the threads 0..order->size()-1 of one block.
  void OrderThreads(std::vector<unsigned>* order);
  // Orders threads that are released together; `ids` come in ascending order.
  void OrderReleased(std::vector<unsigned>* ids);
  // Do threads that can go on come before threads that have not begun?
  bool ResumeFirst();

 private:
  Order order_ = Order::kForward;
  bool ablated_ = false;
  std::mt19937_64 random_;
  std::uint64_t blocks_ = 0;
  std::uint64_t stride_ = 1;
  std::uint64_t start_ = 0;
};

}  // namespace kmosaic::emulation

#endif  // KMOSAIC_GPU_WORKER_EMULATION_RUNTIME_SCHEDULE_H_
