// Recordings for the replay endpoint: JSON Lines as docs/tasks.md defines them.
#ifndef KMOSAIC_CLI_TASKFILES_RECORDINGS_H_
#define KMOSAIC_CLI_TASKFILES_RECORDINGS_H_

#include <optional>
#include <set>
#include <string>

#include "cli/taskfiles/problems.h"

namespace kmosaic {

// The text travels in one message of at most 64 MiB.
inline constexpr size_t kMaxRecordingsBytes = 32 * 1024 * 1024;

struct Recordings {
  std::string text;
  // Tasks that have a reply for turn 0.
  std::set<std::string> tasks;
};

// Nothing, and a problem for each bad line, when the file is not a good recording.
// `reported_at` is the place that names the file, for when it is not there.
std::optional<Recordings> ReadRecordings(const std::string& path, const Location& reported_at,
                                         Problems& problems);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_RECORDINGS_H_
