// A directory that goes away with the test.
#ifndef KMOSAIC_TESTS_TESTING_TEMP_DIRECTORY_H_
#define KMOSAIC_TESTS_TESTING_TEMP_DIRECTORY_H_

#include <filesystem>
#include <string>

#include "common/base/ids.h"

namespace kmosaic {

class TempDirectory {
 public:
  TempDirectory() : path_(std::filesystem::temp_directory_path() / RandomId("kmosaic-test")) {
    std::filesystem::create_directories(path_);
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  std::string path() const { return path_.string(); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  const std::filesystem::path path_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_TESTING_TEMP_DIRECTORY_H_
