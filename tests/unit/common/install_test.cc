#include "common/base/install.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

namespace kmosaic {

TEST_CASE("the installation is found from the running program") {
  CHECK(std::filesystem::exists(ProgramPath("common_tests")));
  CHECK(SharePath("harness") == InstallRoot() + "/share/kernelmosaic/harness");
}

TEST_CASE("KMOSAIC_HOME names the installation") {
  setenv("KMOSAIC_HOME", "/opt/kernelmosaic", 1);
  std::string program = ProgramPath("kmosaic");
  unsetenv("KMOSAIC_HOME");
  CHECK(program == "/opt/kernelmosaic/bin/kmosaic");
}

}  // namespace kmosaic
