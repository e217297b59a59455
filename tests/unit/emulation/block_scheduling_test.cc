#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "unit/emulation/device_fixture.h"

namespace kmosaic {
namespace {

TEST_CASE("every thread of every block runs once, with its three indices") {
  for (const char* schedule : kSchedules) {
    CAPTURE(schedule);
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    std::multiset<std::vector<unsigned>> seen;
    const int error = Launch(Extent{2, 3, 2}, Extent{4, 2, 3}, [&] {
      seen.insert({block_index[0], block_index[1], block_index[2], thread_index[0], thread_index[1],
                   thread_index[2]});
    });
    CHECK(error == 0);
    CHECK(seen.size() == 2 * 3 * 2 * 4 * 2 * 3);
    CHECK(std::set<std::vector<unsigned>>(seen.begin(), seen.end()).size() == seen.size());
    CHECK(block_dim[1] == 2);
    CHECK(grid_dim[2] == 2);
    CHECK(Findings() == "[]");
  }
}

TEST_CASE("an ablated device checks and counts launches, and runs nothing") {
  REQUIRE(kmosaic_emu_configure("ablated", 0xff, -1) == 0);
  int ran = 0;
  CHECK(Launch(3, 5, [&] { ++ran; }) == 0);
  CHECK(Launch(1, 2048, [&] { ++ran; }) != 0);
  CHECK(ran == 0);
  KmEmuCounters counters{};
  kmosaic_emu_counters(&counters);
  CHECK(counters.launches == 1);
  CHECK(Has(Findings(), "illegal_launch"));
}

TEST_CASE("schedules order threads and blocks as they say") {
  const auto order = [](const char* schedule) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    std::vector<unsigned> ids;
    Launch(3, 5, [&] { ids.push_back(block_index[0] * 5 + thread_index[0]); });
    return ids;
  };
  std::vector<unsigned> expected(15);
  std::iota(expected.begin(), expected.end(), 0u);
  CHECK(order("forward") == expected);
  CHECK(order("random:7") == order("random:7"));
  CHECK(order("random:7") != order("random:8"));
  std::reverse(expected.begin(), expected.end());
  CHECK(order("reverse") == expected);
}

TEST_CASE("a barrier makes earlier writes of all threads visible") {
  for (const char* schedule : kSchedules) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    std::vector<int> out(256, -1);
    int shared[64];
    const int error = Launch(4, 64, [&] {
      const unsigned t = thread_index[0];
      for (int round = 0; round < 3; ++round) {
        shared[t] = static_cast<int>(t) + round;
        Sync();
        out[block_index[0] * 64 + t] = shared[63 - t];
        Sync();
      }
    });
    CHECK(error == 0);
    for (unsigned i = 0; i < 256; ++i) CHECK(out[i] == static_cast<int>(63 - i % 64) + 2);
    CHECK(Findings() == "[]");
  }
}

TEST_CASE("a missing barrier shows as a wrong result under at least one schedule") {
  int wrong = 0;
  for (const char* schedule : kSchedules) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    int shared[64] = {};
    std::vector<int> out(64, -1);
    Launch(1, 64, [&] {
      const unsigned t = thread_index[0];
      shared[t] = static_cast<int>(t) + 1;
      out[t] = shared[63 - t];
    });
    for (unsigned t = 0; t < 64; ++t) wrong += out[t] != static_cast<int>(64 - t) ? 1 : 0;
  }
  CHECK(wrong > 0);
}

TEST_CASE("threads that returned do not hold up a barrier") {
  for (const char* schedule : kSchedules) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    int after = 0;
    const int error = Launch(2, 100, [&] {
      if (thread_index[0] >= 37) return;
      Sync();
      ++after;
    });
    CHECK(error == 0);
    CHECK(after == 2 * 37);
    CHECK(Findings() == "[]");
  }
}

TEST_CASE("a counting barrier counts, and's and or's the predicates") {
  REQUIRE(kmosaic_emu_configure("random:3", 0xff, -1) == 0);
  std::vector<int> counts, ands, ors;
  Launch(1, 48, [&] {
    const unsigned t = thread_index[0];
    counts.push_back(kmosaic_emu_barrier(KM_BARRIER_COUNT, t % 3 == 0));
    ands.push_back(kmosaic_emu_barrier(KM_BARRIER_AND, t < 48));
    ors.push_back(kmosaic_emu_barrier(KM_BARRIER_OR, t == 50));
  });
  CHECK(counts == std::vector<int>(48, 16));
  CHECK(ands == std::vector<int>(48, 1));
  CHECK(ors == std::vector<int>(48, 0));
}

TEST_CASE("a spin lock is passed on to the thread that holds it") {
  for (const char* schedule : kSchedules) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    bool ready = false;
    int done = 0;
    const int error = Launch(1, 8, [&] {
      if (thread_index[0] == 3) {
        ready = true;
      } else {
        while (!ready) kmosaic_emu_yield();
      }
      ++done;
    });
    CHECK(error == 0);
    CHECK(done == 8);
  }
}

TEST_CASE("waiting for another block is named as a deadlock") {
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  bool ready = false;
  const int error = Launch(2, 1, [&] {
    if (block_index[0] == 1) ready = true;
    while (!ready) kmosaic_emu_yield();
  });
  CHECK(error == KM_EMU_LAUNCH_FAILURE);
  CHECK(Has(Findings(), "\"kind\":\"deadlock\""));
  CHECK(Has(Findings(), "another block"));
}

TEST_CASE("a failed launch leaves nothing behind for the next one") {
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  CHECK(Launch(1, 64, [] {
          if (thread_index[0] == 40) kmosaic_emu_trap("stop");
          Sync();
        }) == KM_EMU_LAUNCH_FAILURE);
  CHECK(Launch(1, 64, [] {}) == KM_EMU_LAUNCH_FAILURE);  // the error stays, as on a device
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  int after = 0;
  CHECK(Launch(1, 64, [&] {
          Sync();
          ++after;
        }) == 0);
  CHECK(after == 64);
}

TEST_CASE("work is counted") {
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  Launch(3, 32, [] {
    Sync();
    ShuffleDown(~0u, 1, 1);
  });
  KmEmuCounters counters;
  kmosaic_emu_counters(&counters);
  CHECK(counters.launches == 1);
  CHECK(counters.blocks == 3);
  CHECK(counters.threads == 96);
  CHECK(counters.barriers == 96);
  CHECK(counters.warp_operations == 96);
  CHECK(counters.instrumented == 0);
  kmosaic_emu_reset_counters();
  kmosaic_emu_counters(&counters);
  CHECK(counters.launches == 0);
}

TEST_CASE("an unknown schedule is refused") {
  CHECK(kmosaic_emu_configure("sideways", 0, -1) == -1);
  CHECK(kmosaic_emu_configure("random:", 0, -1) == -1);
  CHECK(kmosaic_emu_configure("random:12x", 0, -1) == -1);
}

}  // namespace
}  // namespace kmosaic
