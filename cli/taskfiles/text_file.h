// Reads the text files that a person hands in.
#ifndef KMOSAIC_CLI_TASKFILES_TEXT_FILE_H_
#define KMOSAIC_CLI_TASKFILES_TEXT_FILE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "cli/taskfiles/problems.h"

namespace kmosaic {

// The file's whole text. Nothing, and a problem at `reported_at` (or at the file itself),
// when it cannot be read, is not a regular file, is larger than `max_bytes`, or is not
// UTF-8 (then with the line).
std::optional<std::string> ReadTextFile(const std::string& path, size_t max_bytes,
                                        Problems& problems,
                                        const std::optional<Location>& reported_at = {});

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_TEXT_FILE_H_
