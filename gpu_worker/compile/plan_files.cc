#include "gpu_worker/compile/plan_files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {

namespace fs = std::filesystem;

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) return ErrnoStatus(errno, absl::StrCat("write ", path));
  return absl::OkStatus();
}

absl::Status WritePlanFiles(const BuildPlan& plan, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("mkdir ", directory));
  for (const BuildPlan::File& file : plan.files) {
    fs::path name = fs::path(file.name).lexically_normal();
    if (name.is_absolute() || name.empty() || *name.begin() == "..") {
      return absl::InternalError(
          absl::StrCat("build plan writes outside its directory: ", file.name));
    }
    KMOSAIC_RETURN_IF_ERROR(WriteTextFile((fs::path(directory) / name).string(), file.text));
  }
  return absl::OkStatus();
}

}  // namespace kmosaic
