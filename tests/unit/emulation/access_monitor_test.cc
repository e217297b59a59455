// Accesses as an instrumented build reports them.
#include <catch2/catch.hpp>
#include <string>

#include "unit/emulation/device_fixture.h"

namespace kmosaic {
namespace {

// Device memory for `count` ints, zero.
struct Ints {
  explicit Ints(std::size_t count) : data(static_cast<int*>(kmosaic_emu_allocate(count * 4))) {
    std::memset(data, 0, count * 4);
  }
  ~Ints() { kmosaic_emu_free(data); }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
  int* data;
};

int Load(const int* address) {
  kmosaic_emu_access(address, 4, 0);
  return *address;
}
void Store(int* address, int value) {
  kmosaic_emu_access(address, 4, 1);
  *address = value;
}
void AtomicAdd(int* address, int value) {
  kmosaic_emu_atomic(address, 4);
  *address += value;
}
int Thread() { return static_cast<int>(thread_index[0]); }
int Block() { return static_cast<int>(block_index[0]); }

bool Races() { return Has(Findings(), "\"kind\":\"race\""); }

void Configure(const char* schedule) { REQUIRE(kmosaic_emu_configure(schedule, 0xff, -1) == 0); }

TEST_CASE("counting up without atomics is a race, with them it is none") {
  const char* schedule = GENERATE(from_range(std::begin(kSchedules), std::end(kSchedules)));
  Configure(schedule);
  Ints bins(4);
  SECTION("threads of a warp") {
    REQUIRE(Launch(1, 32, [&] { Store(bins.data, Load(bins.data) + 1); }) == 0);
    CHECK(Races());
    CHECK(Has(Findings(), "byte offset 0 of a tensor of 16 bytes"));
  }
  SECTION("warps of a block") {
    REQUIRE(Launch(1, 64, [&] {
              if (Thread() % 32 == 0) Store(bins.data + 1, Load(bins.data + 1) + 1);
            }) == 0);
    CHECK(Races());
  }
  SECTION("blocks") {
    REQUIRE(Launch(3, 1, [&] { Store(bins.data + 2, Load(bins.data + 2) + 1); }) == 0);
    CHECK(Races());
  }
  SECTION("atomics") {
    REQUIRE(Launch(3, 64, [&] { AtomicAdd(bins.data, 1); }) == 0);
    CHECK(Findings() == "[]");
    KmEmuCounters counters;
    kmosaic_emu_counters(&counters);
    CHECK(counters.atomics == 192);
    CHECK(counters.global_loads == 0);
    CHECK(counters.global_stores == 0);
  }
}

TEST_CASE("a store that the compiler does not announce after its load is seen and counted") {
  Configure("forward");
  Ints values(64);
  const bool own = GENERATE(true, false);
  REQUIRE(Launch(1, 64, [&] {
            int* mine = values.data + (own ? Thread() : 0);
            const int old = Load(mine);
            (void)Load(values.data + 63);
            *mine = old + 1;
          }) == 0);
  KmEmuCounters counters;
  kmosaic_emu_counters(&counters);
  CHECK(counters.global_stores == 64);
  CHECK(counters.global_store_bytes == 256);
  CHECK(Races() == !own);
}

TEST_CASE("a missing barrier is a race, a barrier orders") {
  const char* schedule = GENERATE(from_range(std::begin(kSchedules), std::end(kSchedules)));
  Configure(schedule);
  Ints values(128);
  const bool has_barrier = GENERATE(false, true);
  // Each thread reads what another warp's wrote.
  REQUIRE(Launch(1, 128, [&] {
            Store(values.data + Thread(), Thread() + 1);
            if (has_barrier) Sync();
            (void)Load(values.data + (Thread() + 64) % 128);
          }) == 0);
  CHECK(Races() == !has_barrier);
}

TEST_CASE("a store after another block's load is a race when it changes the value") {
  Configure("forward");
  Ints values(2);
  int added = 0;
  const auto kernel = [&] {
    if (Block() == 0) (void)Load(values.data + 1);
    if (Block() == 1) Store(values.data + 1, added);
  };
  REQUIRE(Launch(2, 1, kernel) == 0);
  CHECK(Findings() == "[]");  // zero over zero
  added = 1;
  REQUIRE(Launch(2, 1, kernel) == 0);
  CHECK(Races());
}

TEST_CASE("what is no race is not called one") {
  const char* schedule = GENERATE(from_range(std::begin(kSchedules), std::end(kSchedules)));
  Configure(schedule);
  Ints values(256);
  SECTION("all write the same") {
    REQUIRE(Launch(4, 64, [&] { Store(values.data, 7); }) == 0);
  }
  SECTION("neighbouring bytes") {
    auto* bytes = reinterpret_cast<char*>(values.data);
    REQUIRE(Launch(4, 64, [&] {
              char* mine = bytes + Block() * 64 + Thread();
              kmosaic_emu_access(mine, 1, 1);
              *mine = static_cast<char>(Thread());
            }) == 0);
  }
  SECTION("one launch after the other") {
    for (int step = 1; step < 3; ++step) {
      REQUIRE(Launch(1, 64, [&] { Store(values.data + (Thread() * step) % 64, step); }) == 0);
    }
  }
  SECTION("a plain look before an atomic") {
    REQUIRE(Launch(4, 64, [&] {
              if (Load(values.data) < 1000) AtomicAdd(values.data, 1);
            }) == 0);
  }
  SECTION("the last block adds up what the others left, by a counter") {
    int* counter = values.data + 200;
    REQUIRE(Launch(4, 1, [&] {
              Store(values.data + Block(), Block() + 1);
              kmosaic_emu_atomic(counter, 4);
              if (++*counter < 4) return;
              int sum = 0;
              for (int i = 0; i < 4; ++i) sum += Load(values.data + i);
              Store(values.data + 100, sum);
            }) == 0);
    CHECK(values.data[100] == 10);
  }
  SECTION("a fence and a flag") {
    REQUIRE(Launch(1, 1, [&] {
              Store(values.data, 5);
              kmosaic_emu_fence();
              Store(values.data + 1, 1);
            }) == 0);
  }
  SECTION("lanes of a warp with a warp operation between") {
    REQUIRE(Launch(1, 32, [&] {
              Store(values.data + Thread(), Thread());
              kmosaic_emu_warp(KM_WARP_SYNC, ~0u, 0, 0, 32);
              Store(values.data + 31 - Thread(), -1);
            }) == 0);
  }
  CHECK(Findings() == "[]");
}

TEST_CASE("shared memory that is read before it is written has a finding of its own") {
  Configure("forward");
  const auto shared = [] { return static_cast<int*>(kmosaic_emu_dynamic_shared()); };
  SECTION("never written") {
    REQUIRE(Launch(
                2, 32, [&] { (void)Load(shared() + Thread()); }, 128) == 0);
    CHECK(Has(Findings(), "\"kind\":\"uninitialised_shared\""));
    CHECK(Has(Findings(), "of dynamic shared memory of 128 bytes is read before"));
  }
  SECTION("only a part of it") {
    REQUIRE(Launch(
                1, 32,
                [&] {
                  if (Thread() < 31) Store(shared() + Thread(), 1);
                  Sync();
                  (void)Load(shared() + 31 - Thread());
                },
                128) == 0);
    CHECK(Has(Findings(), "byte offset 124"));
  }
  SECTION("the block before wrote it") {
    REQUIRE(Launch(
                2, 32,
                [&] {
                  if (Block() == 0) Store(shared() + Thread(), 1);
                  if (Block() == 1) (void)Load(shared() + Thread());
                },
                128) == 0);
    CHECK(Has(Findings(), "\"block\":[1,0,0]"));
  }
  SECTION("all written") {
    REQUIRE(Launch(
                2, 32,
                [&] {
                  Store(shared() + Thread(), 1);
                  Sync();
                  (void)Load(shared() + 31 - Thread());
                },
                128) == 0);
    CHECK(Findings() == "[]");
  }
}

}  // namespace
}  // namespace kmosaic
