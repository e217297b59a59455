#include "common/base/install.h"

#include <cstdlib>
#include <filesystem>

namespace kmosaic {

std::string InstallRoot() {
  if (const char* home = std::getenv("KMOSAIC_HOME"); home != nullptr && *home != '\0') {
    return std::filesystem::absolute(home).lexically_normal().string();
  }
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  // Without /proc there is nothing to go by: the current folder, as a shell would.
  if (error) return std::filesystem::current_path().string();
  return program.parent_path().parent_path().string();
}

std::string ProgramPath(std::string_view name) {
  return (std::filesystem::path(InstallRoot()) / "bin" / name).string();
}

std::string SharePath(std::string_view name) {
  return (std::filesystem::path(InstallRoot()) / "share" / "kernelmosaic" / name).string();
}

}  // namespace kmosaic
