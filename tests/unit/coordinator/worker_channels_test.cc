#include "coordinator/service/worker_channels.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

TEST_CASE("a worker's channel is kept until others push it out") {
  WorkerChannels channels(2);
  auto first = channels.Get("127.0.0.1:1");
  auto second = channels.Get("127.0.0.1:2");
  CHECK(channels.Get("127.0.0.1:1") == first);
  channels.Get("127.0.0.1:3");  // the second was asked for longest ago
  CHECK(channels.Get("127.0.0.1:1") == first);
  CHECK(channels.Get("127.0.0.1:2") != second);
}

}  // namespace
}  // namespace kmosaic
