#include "gpu_worker/emulation/runtime/schedule.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace kmosaic::emulation {

std::optional<Schedule> Schedule::Parse(std::string_view text) {
  Schedule schedule;
  if (text == "forward") return schedule;
  if (text == "reverse") {
    schedule.order_ = Order::kReverse;
    return schedule;
  }
  if (text == "ablated") {
    schedule.ablated_ = true;
    return schedule;
  }
  constexpr std::string_view kRandomPrefix = "random:";
  if (!text.starts_with(kRandomPrefix)) return std::nullopt;
  text.remove_prefix(kRandomPrefix.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  schedule.order_ = Order::kRandom;
  schedule.random_.seed(seed);
  return schedule;
}

void Schedule::BeginGrid(std::uint64_t blocks) {
  blocks_ = blocks;
  if (order_ != Order::kRandom || blocks < 2) return;
  // position * stride + start (mod blocks) visits every block once when stride and blocks have
  // no common divisor; it needs no table.
  start_ = random_() % blocks;
  do {
    stride_ = 1 + random_() % (blocks - 1);
  } while (std::gcd(stride_, blocks) != 1);
}

std::uint64_t Schedule::BlockAt(std::uint64_t position) const {
  if (order_ == Order::kForward || blocks_ < 2) return position;
  if (order_ == Order::kReverse) return blocks_ - 1 - position;
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(position) * stride_ + start_) % blocks_);
}

void Schedule::OrderThreads(std::vector<unsigned>* order) {
  std::iota(order->begin(), order->end(), 0u);
  OrderReleased(order);
}

void Schedule::OrderReleased(std::vector<unsigned>* ids) {
  if (order_ == Order::kReverse) std::reverse(ids->begin(), ids->end());
  if (order_ == Order::kRandom) std::shuffle(ids->begin(), ids->end(), random_);
}

bool Schedule::ResumeFirst() {
  switch (order_) {
    case Order::kForward:
      return true;
    case Order::kReverse:
      return false;
    case Order::kRandom:
      return (random_() & 1) != 0;
  }
  return true;
}

}  // namespace kmosaic::emulation
