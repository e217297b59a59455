#include "gpu_worker/evaluate/lru_cache.h"

#include <catch2/catch.hpp>

namespace kmosaic {
namespace {

std::shared_ptr<const int> Value(int number) { return std::make_shared<const int>(number); }

TEST_CASE("what was used least recently goes first") {
  // Room for two entries of 1000 bytes beside their keys.
  LruCache<int> cache(2600);
  cache.Put("a", Value(1), 1000);
  cache.Put("b", Value(2), 1000);
  REQUIRE(cache.Find("a") != nullptr);
  cache.Put("c", Value(3), 1000);
  CHECK(cache.Find("b") == nullptr);
  REQUIRE(cache.Find("a") != nullptr);
  CHECK(*cache.Find("a") == 1);
  CHECK(*cache.Find("c") == 3);
  CHECK(cache.size_bytes() <= 2600);
}

TEST_CASE("a key has its last value, and its size counts once") {
  LruCache<int> cache(10'000);
  cache.Put("a", Value(1), 1000);
  uint64_t once = cache.size_bytes();
  cache.Put("a", Value(2), 1000);
  CHECK(*cache.Find("a") == 2);
  CHECK(cache.size_bytes() == once);
}

TEST_CASE("a value that is too large is not kept and pushes nothing out") {
  LruCache<int> cache(2000);
  cache.Put("a", Value(1), 1000);
  cache.Put("b", Value(2), 5000);
  CHECK(cache.Find("b") == nullptr);
  CHECK(cache.Find("a") != nullptr);
}

TEST_CASE("a value that was taken out outlives its entry") {
  LruCache<int> cache(1500);
  cache.Put("a", Value(1), 1000);
  auto held = cache.Find("a");
  cache.Put("b", Value(2), 1000);
  CHECK(cache.Find("a") == nullptr);
  CHECK(*held == 1);
}

}  // namespace
}  // namespace kmosaic
