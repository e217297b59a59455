#include "common/base/version.h"

#include <catch2/catch.hpp>
#include <string>

TEST_CASE("the version in the code is the project's") {
  CHECK(std::string(kmosaic::kVersion) == PROJECT_VERSION);
}
