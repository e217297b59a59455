// A directory of a test's own, removed with all in it.
#ifndef KMOSAIC_TESTS_TESTING_TEMP_DIR_H_
#define KMOSAIC_TESTS_TESTING_TEMP_DIR_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kmosaic {

class TempDir {
 public:
  TempDir() {
    path_ = (std::filesystem::temp_directory_path() / "kmosaic-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_TESTING_TEMP_DIR_H_
