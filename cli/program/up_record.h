// How a running `kmosaic up` is found by the other commands of the same user.
//
// It writes one file into a directory of the user's and holds a lock on it while it lives,
// so that a file left by one that was killed is told from a living one on every kernel.
#ifndef KMOSAIC_CLI_PROGRAM_UP_RECORD_H_
#define KMOSAIC_CLI_PROGRAM_UP_RECORD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/program/host.h"

namespace kmosaic {

struct UpRecord {
  int pid = 0;
  std::string coordinator;  // gRPC target
  std::string http;         // HOST:PORT
  std::string data;         // directory
};

// $XDG_RUNTIME_DIR/kmosaic, or $XDG_STATE_HOME/kmosaic/run, or ~/.local/state/kmosaic/run.
std::string UpRecordDirectory(const Host& host);

// Publishes a record while it lives; the destructor takes it away.
class PublishedUpRecord {
 public:
  // Makes the directory (mode 0700) and the file (mode 0600).
  static absl::StatusOr<std::unique_ptr<PublishedUpRecord>> Publish(const std::string& directory,
                                                                    const UpRecord& record);
  ~PublishedUpRecord();
  PublishedUpRecord(const PublishedUpRecord&) = delete;
  PublishedUpRecord& operator=(const PublishedUpRecord&) = delete;

 private:
  PublishedUpRecord(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

// Records of living ones. Removes those of dead ones, and ignores files that belong to
// another user or that others may write.
std::vector<UpRecord> FindUpRecords(const std::string& directory);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_PROGRAM_UP_RECORD_H_
