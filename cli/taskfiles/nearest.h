// The word that somebody probably meant.
#ifndef KMOSAIC_CLI_TASKFILES_NEAREST_H_
#define KMOSAIC_CLI_TASKFILES_NEAREST_H_

#include <optional>
#include <string>
#include <vector>

namespace kmosaic {

// The candidate within an edit distance of 2 (1 for words of up to four letters), the
// first of the nearest; nothing when none is that near.
std::optional<std::string> Nearest(const std::string& word,
                                   const std::vector<std::string>& candidates);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_NEAREST_H_
