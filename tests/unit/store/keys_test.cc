#include "coordinator/store/keys.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace kmosaic {
namespace {

constexpr uint64_t kBigJob = 0x0102'0304'0506'07ffull;
constexpr uint32_t kMaxNumber = std::numeric_limits<uint32_t>::max();

TEST_CASE("every key parses back to what made it") {
  for (uint64_t job : {uint64_t{0}, uint64_t{1}, uint64_t{255}, uint64_t{256}, kBigJob}) {
    CHECK(keys::ParseJob(keys::Job(job)) == job);
    for (uint32_t number : {0u, 1u, 255u, 65536u, kMaxNumber}) {
      CHECK(keys::ParseNumbered(keys::Item(job, number)) == keys::Numbered{job, number});
      CHECK(keys::ParseNumbered(keys::Task(job, number)) == keys::Numbered{job, number});
      CHECK(keys::ParseOfItem(keys::Step(job, number, 7)) == keys::OfItem{job, number, 7});
      CHECK(keys::ParseOfItem(keys::Attempt(job, 3, number)) == keys::OfItem{job, 3, number});
      CHECK(keys::ParseEvent(keys::Event(job, number)) == keys::EventKey{job, number});
    }
  }
}

TEST_CASE("a key of another length does not parse") {
  std::string item = keys::Item(1, 2);
  for (size_t length = 0; length <= item.size() + 8; ++length) {
    std::string key(length, 'x');
    CHECK(keys::ParseJob(key).has_value() == (length == 8));
    CHECK(keys::ParseNumbered(key).has_value() == (length == 12));
    CHECK(keys::ParseOfItem(key).has_value() == (length == 16));
    CHECK(keys::ParseEvent(key).has_value() == (length == 16));
  }
}

TEST_CASE("byte order of keys is numeric order") {
  std::vector<uint32_t> numbers = {0, 1, 2, 127, 128, 255, 256, 65535, 65536, 1u << 24, kMaxNumber};
  for (size_t i = 1; i < numbers.size(); ++i) {
    CHECK(keys::Item(5, numbers[i - 1]) < keys::Item(5, numbers[i]));
    CHECK(keys::Step(5, 6, numbers[i - 1]) < keys::Step(5, 6, numbers[i]));
    CHECK(keys::Event(5, numbers[i - 1]) < keys::Event(5, numbers[i]));
    CHECK(keys::Item(numbers[i - 1], kMaxNumber) < keys::Item(numbers[i], 0));
  }
}

TEST_CASE("a range holds exactly what its name says") {
  auto in = [](const keys::Range& range, const std::string& key) {
    return range.begin <= key && key < range.end;
  };
  for (uint64_t job : {uint64_t{0}, uint64_t{7}, uint64_t{255}, kBigJob}) {
    CHECK(in(keys::OfJob(job), keys::Job(job)));
    CHECK(in(keys::OfJob(job), keys::Event(job, std::numeric_limits<uint64_t>::max())));
    CHECK_FALSE(in(keys::OfJob(job), keys::Item(job + 1, 0)));
    CHECK_FALSE(in(keys::NumberedFrom(job, 4), keys::Item(job, 3)));
    CHECK(in(keys::NumberedFrom(job, 4), keys::Item(job, 4)));
    CHECK(in(keys::NumberedFrom(job, 4), keys::Item(job, kMaxNumber)));
    CHECK_FALSE(in(keys::NumberedFrom(job, 4), keys::Item(job + 1, 5)));
    CHECK(in(keys::AllOfItem(job, 255), keys::Step(job, 255, kMaxNumber)));
    CHECK_FALSE(in(keys::AllOfItem(job, 255), keys::Step(job, 256, 0)));
    CHECK_FALSE(in(keys::EventsFrom(job, 9), keys::Event(job, 8)));
    CHECK(in(keys::EventsFrom(job, 9), keys::Event(job, 9)));
    CHECK_FALSE(in(keys::EventsFrom(job, 9), keys::Event(job + 1, 9)));
  }
}

TEST_CASE("names of families on disk do not change") {
  std::vector<std::string> names;
  for (Family family : kFamilies) names.emplace_back(FamilyName(family));
  CHECK(names == std::vector<std::string>{"meta", "job", "job_state", "job_id", "task", "item",
                                          "result", "attempt", "step", "event", "task_spec", "live",
                                          "dead_letter", "extension"});
}

TEST_CASE("key bytes are pinned") {
  CHECK(keys::Step(1, 2, 3) == std::string("\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\3", 16));
  CHECK(keys::Event(1, 258) == std::string("\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1\2", 16));
}

}  // namespace
}  // namespace kmosaic
