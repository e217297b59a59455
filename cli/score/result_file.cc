#include "cli/score/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace kmosaic {

absl::StatusOr<std::unique_ptr<ResultFile>> ResultFile::Open(const std::string& path) {
  std::string partial = absl::StrCat(path, ".partial");
  int fd = open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("--out: cannot write ", partial));
  return std::unique_ptr<ResultFile>(new ResultFile(path, partial, fd));
}

ResultFile::~ResultFile() { close(fd_); }

absl::Status ResultFile::Append(const nlohmann::ordered_json& value) {
  std::string line =
      value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  size_t written = 0;
  while (written < line.size()) {
    ssize_t got = write(fd_, line.data() + written, line.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("--out: cannot write ", partial_));
    written += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status ResultFile::Finish() {
  if (fsync(fd_) != 0 || rename(partial_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("--out: cannot finish ", path_));
  }
  return absl::OkStatus();
}

}  // namespace kmosaic
