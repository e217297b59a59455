// The file of `score --out`: one JSON object per line, complete or under another name.
#ifndef KMOSAIC_CLI_SCORE_RESULT_FILE_H_
#define KMOSAIC_CLI_SCORE_RESULT_FILE_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace kmosaic {

// Lines are on their way to the disk at once, under PATH.partial. One thread.
class ResultFile {
 public:
  static absl::StatusOr<std::unique_ptr<ResultFile>> Open(const std::string& path);
  // Leaves PATH.partial where Finish was not called.
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  absl::Status Append(const nlohmann::ordered_json& value);
  // Makes it durable and gives it its name, replacing an earlier file.
  absl::Status Finish();

  const std::string& partial_path() const { return partial_; }

 private:
  ResultFile(std::string path, std::string partial, int fd)
      : path_(std::move(path)), partial_(std::move(partial)), fd_(fd) {}

  std::string path_;
  std::string partial_;
  int fd_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SCORE_RESULT_FILE_H_
