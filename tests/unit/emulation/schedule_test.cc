#include "gpu_worker/emulation/runtime/schedule.h"

#include <catch2/catch.hpp>
#include <set>

namespace kmosaic::emulation {
namespace {

TEST_CASE("every block comes once under every schedule, whatever their number") {
  for (const char* text : {"forward", "reverse", "random:42", "random:18446744073709551615"}) {
    auto schedule = Schedule::Parse(text);
    REQUIRE(schedule);
    for (const std::uint64_t blocks : {1u, 2u, 3u, 97u, 1024u}) {
      schedule->BeginGrid(blocks);
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < blocks; ++i) seen.insert(schedule->BlockAt(i));
      CHECK(seen.size() == blocks);
      CHECK(*seen.rbegin() == blocks - 1);
    }
  }
}

TEST_CASE("a huge grid needs no table") {
  auto schedule = Schedule::Parse("random:1");
  REQUIRE(schedule);
  const std::uint64_t blocks = std::uint64_t{1} << 60;
  schedule->BeginGrid(blocks);
  CHECK(schedule->BlockAt(blocks - 1) < blocks);
  CHECK(schedule->BlockAt(5) != schedule->BlockAt(6));
}

TEST_CASE("an ablated schedule runs no kernel, and the others do") {
  CHECK(Schedule::Parse("ablated")->ablated());
  CHECK_FALSE(Schedule::Parse("forward")->ablated());
  CHECK_FALSE(Schedule::Parse("ablate"));
}

}  // namespace
}  // namespace kmosaic::emulation
