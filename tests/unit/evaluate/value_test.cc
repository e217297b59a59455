#include "gpu_worker/evaluate/value.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/evaluate/tensors.h"

using nlohmann::json;

namespace kmosaic {
namespace {

std::shared_ptr<const std::string> Block(size_t size) {
  return std::make_shared<const std::string>(size, '\x01');
}

TEST_CASE("every node that is not as agreed is refused, none is followed out of its block") {
  json good = {
      {"k", "tensor"}, {"dtype", "float32"}, {"shape", {2, 3}}, {"offset", 8}, {"bytes", 24}};
  REQUIRE(ParseValue(good, Block(32)).ok());
  auto broken = [&](const char* key, json value) {
    json node = good;
    node[key] = std::move(value);
    return ParseValue(node, Block(32)).status();
  };
  CHECK_FALSE(broken("offset", 9).ok());
  CHECK_FALSE(broken("offset", 6).ok());
  CHECK_FALSE(broken("offset", -8).ok());
  CHECK_FALSE(broken("offset", 1e300).ok());
  CHECK_FALSE(broken("bytes", 20).ok());
  CHECK_FALSE(broken("bytes", "24").ok());
  CHECK_FALSE(broken("shape", json::array({2, -3})).ok());
  CHECK_FALSE(broken("shape", json::array({int64_t{1} << 40, int64_t{1} << 40})).ok());
  CHECK_FALSE(broken("shape", 6).ok());
  CHECK_FALSE(broken("dtype", 4).ok());
  CHECK_FALSE(broken("k", "pickle").ok());
  CHECK_FALSE(ParseValue(good, nullptr).ok());
  CHECK_FALSE(ParseValue(json::array(), nullptr).ok());
  CHECK_FALSE(ParseValue({{"k", "dict"}, {"items", {{1, good}}}}, Block(32)).ok());
  json deep = {{"k", "none"}};
  for (int i = 0; i < 100; ++i) deep = {{"k", "list"}, {"items", json::array({deep})}};
  CHECK_FALSE(ParseValue(deep, nullptr).ok());
}

TEST_CASE("leaves carry the way to them") {
  json weight = {{"k", "float"}, {"v", "-inf"}};
  json dict = {{"k", "dict"}, {"items", json::array({json::array({"weight", weight})})}};
  json node = {{"k", "tuple"}, {"items", json::array({{{"k", "int"}, {"v", 3}}, dict})}};
  auto value = ParseValue(node, nullptr);
  REQUIRE(value.ok());
  std::vector<Leaf> leaves = Leaves(*value);
  REQUIRE(leaves.size() == 2);
  CHECK(leaves[0].path == "[0]");
  CHECK(leaves[1].path == "[1].weight");
  CHECK(leaves[1].value->number == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a block is copied, bounded, and must be a memory file") {
  int fd = memfd_create("block", MFD_CLOEXEC);
  REQUIRE(write(fd, "abcdef", 6) == 6);
  auto block = ReadBlock(fd, 6);
  REQUIRE(block.ok());
  CHECK(**block == "abcdef");
  CHECK(ReadBlock(fd, 5).status().code() == absl::StatusCode::kInvalidArgument);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK_FALSE(ReadBlock(ends[0], 6).ok());
  for (int open : {fd, ends[0], ends[1]}) close(open);
}

TEST_CASE("a block of pages that nobody wrote is refused") {
  int fd = memfd_create("block", MFD_CLOEXEC);
  REQUIRE(ftruncate(fd, off_t{1} << 40) == 0);
  auto block = ReadBlock(fd, uint64_t{1} << 41);
  CHECK(block.status().code() == absl::StatusCode::kInvalidArgument);
  // What alignment leaves between tensors is no hole.
  REQUIRE(ftruncate(fd, 100) == 0);
  CHECK(ReadBlock(fd, 1000).ok());
  close(fd);
}

TEST_CASE("half and bfloat16 are decoded as IEEE 754 and round to nearest even") {
  CHECK(HalfToDouble(0x3C00) == 1.0);
  CHECK(HalfToDouble(0xC000) == -2.0);
  CHECK(HalfToDouble(0x7BFF) == 65504.0);
  CHECK(HalfToDouble(0x0001) == 0x1p-24);
  CHECK(std::isinf(HalfToDouble(0x7C00)));
  CHECK(std::isnan(HalfToDouble(0x7C01)));
  CHECK(BFloat16ToDouble(0x3F80) == 1.0);
  CHECK(std::isnan(BFloat16ToDouble(0xFFFF)));
  CHECK(RoundTo(DType::kFloat16, 1 + 0x1p-11) == 1.0);
  CHECK(RoundTo(DType::kFloat16, 1 + 3 * 0x1p-11) == 1 + 0x1p-9);
  CHECK(RoundTo(DType::kFloat16, 65519.0) == 65504.0);
  CHECK(std::isinf(RoundTo(DType::kFloat16, 65520.0)));
  CHECK(RoundTo(DType::kFloat16, 0x1p-25) == 0.0);
  CHECK(RoundTo(DType::kBFloat16, 1 + 0x1p-8) == 1.0);
  for (uint32_t bits = 0; bits < 0x7C00; bits += 7) {
    double value = HalfToDouble(static_cast<uint16_t>(bits));
    REQUIRE(RoundTo(DType::kFloat16, value) == value);
    REQUIRE(testing::HalfBits(value) == bits);
  }
}

}  // namespace
}  // namespace kmosaic
