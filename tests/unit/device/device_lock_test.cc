#include "gpu_worker/device/device_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <future>
#include <thread>

#include "tests/unit/compile/temp_dir.h"

namespace kmosaic {
namespace {

using Mode = DeviceLock::Mode;
const auto kAtOnce = [] { return true; };

TEST_CASE("readers share, a writer is alone") {
  testing::TempDir dir;
  std::string path = dir.path() + "/gpu.lock";
  auto first = DeviceLock::Acquire(path, Mode::kShared, kAtOnce);
  REQUIRE(first.ok());
  auto second = DeviceLock::Acquire(path, Mode::kShared, kAtOnce);
  CHECK(second.ok());
  CHECK(absl::IsCancelled(DeviceLock::Acquire(path, Mode::kExclusive, kAtOnce).status()));
  *first = DeviceLock();
  *second = DeviceLock();
  auto writer = DeviceLock::Acquire(path, Mode::kExclusive, kAtOnce);
  REQUIRE(writer.ok());
  CHECK(absl::IsCancelled(DeviceLock::Acquire(path, Mode::kShared, kAtOnce).status()));
}

TEST_CASE("readers that come after a waiting writer wait behind it") {
  testing::TempDir dir;
  std::string path = dir.path() + "/gpu.lock";
  auto reader = DeviceLock::Acquire(path, Mode::kShared, kAtOnce);
  REQUIRE(reader.ok());
  std::promise<void> waits;
  std::atomic<bool> told = false;
  bool written = false;
  std::thread writer([&] {
    auto held = DeviceLock::Acquire(path, Mode::kExclusive, [&] {
      if (!told.exchange(true)) waits.set_value();
      return false;
    });
    written = held.ok();
  });
  waits.get_future().wait();
  CHECK(absl::IsCancelled(DeviceLock::Acquire(path, Mode::kShared, kAtOnce).status()));
  *reader = DeviceLock();
  writer.join();
  CHECK(written);
  CHECK(DeviceLock::Acquire(path, Mode::kShared, kAtOnce).ok());
}

TEST_CASE("the lock of a killed process is free") {
  testing::TempDir dir;
  std::string path = dir.path() + "/gpu.lock";
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    auto held = DeviceLock::Acquire(path, Mode::kExclusive, kAtOnce);
    if (!held.ok() || write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(absl::IsCancelled(DeviceLock::Acquire(path, Mode::kShared, kAtOnce).status()));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(DeviceLock::Acquire(path, Mode::kShared, kAtOnce).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("a lock that cannot be made names its file") {
  auto lock = DeviceLock::Acquire("/nonexistent/gpu.lock", Mode::kShared, kAtOnce);
  CHECK(std::string(lock.status().message()).find("/nonexistent/gpu.lock") != std::string::npos);
}

}  // namespace
}  // namespace kmosaic
