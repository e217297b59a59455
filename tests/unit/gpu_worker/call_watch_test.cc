#include "gpu_worker/service/call_watch.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>

namespace kmosaic {
namespace {

TEST_CASE("work learns that its caller went away, other work does not") {
  CallWatch watch;
  std::atomic<bool> gone = false;
  Cancellation one;
  Cancellation other;
  std::promise<void> told;
  auto callback = one.OnCancel([&] { told.set_value(); });
  CallWatch::Guard first(
      &watch, [&] { return gone.load(); }, &one);
  CallWatch::Guard second(
      &watch, [] { return false; }, &other);
  CHECK_FALSE(one.cancelled());
  gone = true;
  told.get_future().wait();
  CHECK(one.cancelled());
  CHECK_FALSE(other.cancelled());
}

TEST_CASE("a watch ends while it has nothing to watch") { CallWatch watch; }

}  // namespace
}  // namespace kmosaic
