#include "coordinator/dataset/split.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace kmosaic {
namespace {

TEST_CASE("the split of a task never changes") {
  // By Python: int(sha256(id).hexdigest()[:8], 16) * 100 >> 32 is 37, 90 and 98.
  CHECK(SplitOfTask("task-0") == "train");
  CHECK(SplitOfTask("task-5") == "validation");
  CHECK(SplitOfTask("task-38") == "test");
}

TEST_CASE("shares are 90, 5 and 5 percent") {
  std::map<std::string_view, int> count;
  for (int i = 0; i < 20000; ++i) ++count[SplitOfTask("task-" + std::to_string(i))];
  CHECK(count.size() == 3);
  CHECK(count["train"] == Approx(18000).epsilon(0.01));
  CHECK(count["validation"] == Approx(1000).epsilon(0.15));
  CHECK(count["test"] == Approx(1000).epsilon(0.15));
}

}  // namespace
}  // namespace kmosaic
