#include <catch2/catch.hpp>
#include <vector>

#include "unit/emulation/device_fixture.h"

namespace kmosaic {
namespace {

std::uint64_t Warp(int op, std::uint64_t value, int argument = 0, int width = 32,
                   unsigned mask = ~0u) {
  return kmosaic_emu_warp(op, mask, value, argument, width);
}

TEST_CASE("shuffles move values between lanes, inside segments of the width") {
  for (const char* schedule : kSchedules) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    std::vector<std::uint64_t> index(32), up(32), down(32), exchange(32);
    Launch(1, 32, [&] {
      const unsigned lane = thread_index[0];
      index[lane] = Warp(KM_WARP_SHUFFLE_INDEX, lane, 3, 8);
      up[lane] = Warp(KM_WARP_SHUFFLE_UP, lane, 2, 16);
      down[lane] = Warp(KM_WARP_SHUFFLE_DOWN, lane, 5, 32);
      exchange[lane] = Warp(KM_WARP_SHUFFLE_XOR, lane, 1, 32);
    });
    for (unsigned lane = 0; lane < 32; ++lane) {
      CHECK(index[lane] == lane / 8 * 8 + 3);
      CHECK(up[lane] == (lane % 16 >= 2 ? lane - 2 : lane));
      CHECK(down[lane] == (lane + 5 < 32 ? lane + 5 : lane));
      CHECK(exchange[lane] == (lane ^ 1));
    }
    CHECK(Findings() == "[]");
  }
}

TEST_CASE("votes, matches and reductions see every lane of the mask") {
  REQUIRE(kmosaic_emu_configure("random:5", 0xff, -1) == 0);
  std::vector<std::uint64_t> ballot(64), any(64), all(64), sum(64), least(64);
  Launch(1, 64, [&] {
    const unsigned t = thread_index[0];
    ballot[t] = Warp(KM_WARP_BALLOT, t % 2);
    any[t] = Warp(KM_WARP_MATCH_ANY, t % 4);
    all[t] = Warp(KM_WARP_MATCH_ALL, t / 32);
    sum[t] = Warp(KM_WARP_ADD, t);
    least[t] = Warp(KM_WARP_MIN_SIGNED, static_cast<std::uint64_t>(-static_cast<int>(t)));
  });
  for (unsigned t = 0; t < 64; ++t) {
    CHECK(static_cast<unsigned>(ballot[t]) == 0xaaaaaaaau);
    CHECK(any[t] == 0x11111111u << t % 4);
    CHECK(all[t] == ~0u);
    CHECK(sum[t] == (t < 32 ? 496 : 496 + 1024));
    CHECK(static_cast<std::int64_t>(least[t]) == (t < 32 ? -31 : -63));
  }
}

TEST_CASE("lanes of different masks do not wait for each other") {
  REQUIRE(kmosaic_emu_configure("random:9", 0xff, -1) == 0);
  std::vector<std::uint64_t> sums(32);
  Launch(1, 32, [&] {
    const unsigned lane = thread_index[0];
    const unsigned mask = 0xffu << (lane / 8 * 8);
    for (int round = 0; round <= static_cast<int>(lane / 8); ++round) {
      sums[lane] = Warp(KM_WARP_ADD, 1, 0, 32, mask);
    }
  });
  CHECK(sums == std::vector<std::uint64_t>(32, 8));
  CHECK(Findings() == "[]");
}

TEST_CASE("lanes that returned or never were do not hold up a warp operation") {
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  std::vector<std::uint64_t> votes(40, 0);
  CHECK(Launch(1, 40, [&] {
          const unsigned t = thread_index[0];
          if (t < 8) return;
          votes[t] = Warp(KM_WARP_BALLOT, 1);
        }) == 0);
  CHECK(static_cast<unsigned>(votes[20]) == 0xffffff00u);
  CHECK(static_cast<unsigned>(votes[39]) == 0xffu);
  CHECK(Findings() == "[]");
}

TEST_CASE("a full-mask shuffle in a branch reads absent lanes as 0 and is reported") {
  for (const char* schedule : kSchedules) {
    CAPTURE(schedule);
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    int sum = 0;
    const int error = Launch(1, 64, [&] {
      const unsigned t = thread_index[0];
      int value = static_cast<int>(t) + 1;
      if (t < 4) {
        for (int delta = 16; delta > 0; delta /= 2) value += ShuffleDown(~0u, value, delta);
        if (t == 0) sum = value;
      }
      Sync();
    });
    CHECK(error == 0);
    CHECK(sum == 1 + 2 + 3 + 4);
    CHECK(Has(Findings(), "\"kind\":\"divergent_shuffle\""));
    CHECK(Has(Findings(), "does not take part"));
  }
}

TEST_CASE("a full-mask shuffle that all lanes reach is not reported") {
  REQUIRE(kmosaic_emu_configure("reverse", 0xff, -1) == 0);
  int sum = 0;
  Launch(1, 64, [&] {
    int value = 1;
    if (thread_index[0] < 32) {
      for (int delta = 16; delta > 0; delta /= 2) value += ShuffleDown(~0u, value, delta);
      if (thread_index[0] == 0) sum = value;
    }
    Sync();
  });
  CHECK(sum == 32);
  CHECK(Findings() == "[]");
}

TEST_CASE("a warp barrier that some lanes never reach is a deadlock, with the lanes named") {
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  CHECK(Launch(1, 32, [] {
          if (thread_index[0] < 16) Warp(KM_WARP_SYNC, 0);
          Sync();
        }) == 0);
  CHECK(Has(Findings(), "\"kind\":\"deadlock\""));
  CHECK(Has(Findings(), "0x0000ffff"));
  CHECK(Has(Findings(), "0xffff0000 wait in __syncthreads"));
}

TEST_CASE("a lane outside of its own mask is reported") {
  REQUIRE(kmosaic_emu_configure("forward", 0xff, -1) == 0);
  Launch(1, 32, [] {
    if (thread_index[0] == 5) Warp(KM_WARP_BALLOT, 1, 0, 32, 0x1);
  });
  CHECK(Has(Findings(), "not in the mask"));
}

TEST_CASE("the active mask holds the lanes that come together") {
  for (const char* schedule : kSchedules) {
    REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0);
    std::vector<std::uint64_t> masks(32, 0);
    Launch(1, 32, [&] {
      const unsigned lane = thread_index[0];
      if (lane % 3 == 0) masks[lane] = Warp(KM_WARP_ACTIVE, 0);
      Sync();
    });
    CHECK(masks[0] == 0x49249249u);
    CHECK(masks[30] == 0x49249249u);
    CHECK(Findings() == "[]");
  }
}

}  // namespace
}  // namespace kmosaic
