// Texts that are compared with files. KMOSAIC_UPDATE_GOLDEN=1 writes the files instead.
#ifndef KMOSAIC_TESTS_UNIT_AGENT_GOLDEN_H_
#define KMOSAIC_TESTS_UNIT_AGENT_GOLDEN_H_

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace kmosaic {

inline void CheckGolden(const std::string& name, const std::string& text) {
  std::string path = std::string(KMOSAIC_GOLDEN_DIR) + "/" + name + ".txt";
  if (std::getenv("KMOSAIC_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.is_open());
  std::ostringstream expected;
  expected << file.rdbuf();
  INFO("golden file " << path << "; run with KMOSAIC_UPDATE_GOLDEN=1 to write it anew");
  CHECK(text == expected.str());
}

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_AGENT_GOLDEN_H_
