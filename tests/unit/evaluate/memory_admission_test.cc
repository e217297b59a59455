#include "gpu_worker/evaluate/memory_admission.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

namespace kmosaic {
namespace {

const auto kAtOnce = [] { return true; };

TEST_CASE("evaluations share the memory there is") {
  MemoryAdmission memory(100);
  auto first = memory.Acquire(60, kAtOnce);
  REQUIRE(first.ok());
  auto second = memory.Acquire(40, kAtOnce);
  REQUIRE(second.ok());
  CHECK(absl::IsCancelled(memory.Acquire(1, kAtOnce).status()));
  *first = MemoryAdmission::Permit();
  CHECK(memory.used_bytes() == 40);
  CHECK(memory.Acquire(60, kAtOnce).ok());
}

TEST_CASE("what is larger than all there is is admitted alone") {
  MemoryAdmission memory(100);
  auto small = memory.Acquire(1, kAtOnce);
  CHECK(absl::IsCancelled(memory.Acquire(1000, kAtOnce).status()));
  *small = MemoryAdmission::Permit();
  auto large = memory.Acquire(1000, kAtOnce);
  REQUIRE(large.ok());
  CHECK(absl::IsCancelled(memory.Acquire(1, kAtOnce).status()));
}

TEST_CASE("who comes later waits behind a large one, which gets its turn") {
  MemoryAdmission memory(100);
  auto held = memory.Acquire(50, kAtOnce);
  std::promise<void> waits;
  std::atomic<bool> told = false;
  std::atomic<bool> admitted = false;
  std::thread large([&] {
    auto permit = memory.Acquire(100, [&] {
      if (!told.exchange(true)) waits.set_value();
      return false;
    });
    admitted = permit.ok();
  });
  waits.get_future().wait();
  CHECK(absl::IsCancelled(memory.Acquire(10, kAtOnce).status()));
  *held = MemoryAdmission::Permit();
  large.join();
  CHECK(admitted);
  CHECK(memory.used_bytes() == 0);
}

}  // namespace
}  // namespace kmosaic
